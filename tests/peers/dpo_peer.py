"""finetune_dpo against TRL's DPOTrainer and KTOTrainer, step by step.

A tiny Llama, a Qwen2 with a ChatML template, and 40 pairs. TRL trains them for 20 steps of two pairs each, with AdamW; we train
the same rows in the same order. Held against it, at every step:
  - the loss, rewards, margins, accuracies and log-probabilities that both log;
  - the weights after the last step.
All weights and adapters; texts and conversations; sigmoid, hinge, IPO, the sigmoid of scores per token. Adapters begin from
the same numbers. TRL keeps SimPO and ORPO in trainers of their own: theirs are compared as functions of the log-probabilities.
KTO takes 80 answers with a label, four to a step, or the 40 pairs; its kl is compared, too.
"""
import contextlib
import io
import json
import os
import random
import subprocess
import tempfile
import traceback

import tap

try:
    import torch
    import torch.nn.functional as F
    import transformers
    from datasets import Dataset, disable_progress_bars
    from peft import PeftModel
    from safetensors.torch import load_file
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
    from trl import DPOConfig, DPOTrainer, KTOConfig, KTOTrainer
except ImportError as why:
    tap.skip("finetune_dpo beside TRL", why)
    tap.done()

BUILD = os.environ.get("BUILD", "build")
STEPS, BATCH, ANSWERS, LR, LIMIT = 20, 2, 4, 3e-4, 1e-5  # pairs, or single answers, of a batch; roundings grow with LR: at 5e-4 one machine is at 1.01e-5
CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
SIZES = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=128, rms_norm_eps=1e-5, bos_token_id=0, eos_token_id=0, tie_word_embeddings=False)
NAMES = ["loss", "rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies", "logps/chosen", "logps/rejected", "kl"]


def make_rows(root):
    r = random.Random(7)
    words = ["".join(r.choice("abcdefghiklmnoprstuw") for _ in range(r.randint(2, 6))) for _ in range(60)]
    some = lambda most: " ".join(r.choice(words) for _ in range(r.randint(1, most)))
    say = lambda role, text: {"role": role, "content": text}
    texts, chats, wholes, answers, replies = [], [], [], [], []
    for i in range(STEPS * BATCH):
        question, better, worse = some(10), some(12), some(12)
        texts.append({"prompt": question, "chosen": " " + better, "rejected": " " + worse})
        begin = [say("system", some(4))] if i % 3 == 0 else []
        begin += [say("user", some(5)), say("assistant", some(5))] if i % 4 == 1 else []
        begin.append(say("user", question))
        chats.append({"prompt": begin, "chosen": [say("assistant", better)], "rejected": [say("assistant", worse)]})
        wholes.append({"chosen": begin + [say("assistant", better)], "rejected": begin + [say("assistant", worse)]})
    for i in range(STEPS * ANSWERS):  # four batches have one label alone
        label = i % 7 < 4 if i >= 16 else i < 8
        row = {"prompt": some(10), "completion": " " + some(12), "label": label}
        answers.append(row)
        begin = [say("system", some(4))] if i % 3 == 0 else []
        replies.append({"prompt": begin + [say("user", row["prompt"])], "completion": [say("assistant", some(12))], "label": label})
    sets = {"texts": texts, "chats": chats, "wholes": wholes, "answers": answers, "replies": replies}
    for name, rows in sets.items():
        with open(os.path.join(root, name + ".jsonl"), "w") as f:
            f.writelines(json.dumps(row) + "\n" for row in rows)
    return sets


def make_model(family, rows, folder):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator([row["prompt"] + row["chosen"] for row in rows],
                          trainers.BpeTrainer(vocab_size=330, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
                                              show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    fast = PreTrainedTokenizerFast(tokenizer_object=t, eos_token="<|endoftext|>", pad_token="<|im_end|>")
    fast.chat_template = CHATML
    fast.save_pretrained(folder)
    torch.manual_seed(5)
    model = getattr(transformers, family + "ForCausalLM")(getattr(transformers, family + "Config")(vocab_size=len(fast), **SIZES))
    with torch.no_grad():
        for n, p in model.named_parameters():
            p.copy_(torch.randn(p.shape) * 0.12 + (1.0 if "norm" in n else 0.0))
    model.save_pretrained(folder)


def theirs(folder, rows, root, adapter=None, kto=False, **options):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    if adapter:
        model = PeftModel.from_pretrained(model, adapter, is_trainable=True)
    config = (KTOConfig if kto else DPOConfig)(
        output_dir=os.path.join(root, "trl"), per_device_train_batch_size=ANSWERS if kto else BATCH, max_steps=STEPS, learning_rate=LR,
        lr_scheduler_type="constant", warmup_steps=0, weight_decay=0.01, max_grad_norm=1.0, logging_steps=1, save_strategy="no",
        report_to="none", use_cpu=True, bf16=False, max_length=128, disable_tqdm=True, gradient_checkpointing=False,
        disable_dropout=True, **options)
    trainer = (KTOTrainer if kto else DPOTrainer)(model=model, args=config, train_dataset=Dataset.from_list(rows),
                                                  processing_class=AutoTokenizer.from_pretrained(folder))
    trainer._get_train_sampler = lambda *_: torch.utils.data.SequentialSampler(trainer.train_dataset)  # in order
    with contextlib.redirect_stdout(io.StringIO()):  # it prints every step
        trainer.train()
    log = [line for line in trainer.state.log_history if "loss" in line]
    return log, {n.replace(".default", ""): p.detach() for n, p in trainer.model.named_parameters()}


def ours(folder, data, output, options, steps=STEPS):
    command = [f"{BUILD}/finetune_dpo", "--model", folder, "--dataset", data, "--output", output, "--batch-size", str(BATCH),
               "--max-steps", str(steps), "--max-length", "128", "--no-shuffle", "--lr", str(LR), "--schedule", "constant",
               "--warmup-steps", "0", "--weight-decay", "0.01", "--clip-norm", "1", "--threads", "2"] + options
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"exit {run.returncode}: {' '.join(command)}: {run.stderr[-1500:]}"
    with open(os.path.join(output, "metrics.jsonl")) as f:
        return [json.loads(line) for line in f]


def apart(a, b):
    return abs(a - b) / max(1.0, abs(b))


def compare(name, folder, rows, data, root, ours_options, adapters, **options):
    output, adapter = os.path.join(root, name.replace(" ", "_")), None
    if adapters:
        adapter = os.path.join(root, "begin")
        if not os.path.exists(adapter):  # the adapters as they begin, by a step that changes nothing
            ours(folder, data, adapter + "-run", ["--lr", "0", "--weight-decay", "0"], 1)
            os.symlink(os.path.join(adapter + "-run", "checkpoint-final"), adapter)
    metrics = ours(folder, data, output, ours_options)
    log, weights = theirs(folder, rows, root, adapter, **options)
    assert len(metrics) == len(log) == STEPS, (len(metrics), len(log))
    differ = [(i, n) for i, (m, t) in enumerate(zip(metrics, log)) for n in NAMES if (n in m) != (n in t)]
    assert not differ, differ[:3]  # a batch without chosen answers, say, has no reward of theirs
    worst = max((apart(m[n], t[n]), n, i) for i, (m, t) in enumerate(zip(metrics, log)) for n in NAMES if n in t)
    moved = metrics[-1]["loss"] / metrics[0]["loss"]
    final = load_file(os.path.join(output, "checkpoint-final", "adapter_model.safetensors" if adapters else "model.safetensors"))
    missing = [n for n in final if n not in weights]
    assert not missing, (missing[:3], list(weights)[:3])
    distance = max(float((final[n] - weights[n]).abs().max()) for n in final)
    tap.ok(worst[0] <= LIMIT, f"{name}: {STEPS} steps within {worst[0]:.1e}", worst)
    tap.ok(distance <= 5e-5, f"{name}: the weights after them within {distance:.1e}")
    tap.ok(moved != 1, f"{name}: the loss moved", moved)
    return metrics


def compare_kto(*arguments, **options):
    metrics = compare(*arguments, kto=True, **options)
    kls = [m["kl"] for m in metrics]
    tap.ok(0 in kls and max(kls) > 1e-3, f"{arguments[0]}: kl is 0 at first, and above it later", max(kls))


def functions(name, folder, data, root, options, loss):
    """SimPO and ORPO: our loss from the log-probabilities that we log, in steps of one pair."""
    output = os.path.join(root, name)
    tok = AutoTokenizer.from_pretrained(folder)
    rows = [json.loads(line) for line in open(data)]
    metrics = ours(folder, data, output, options + ["--batch-size", "1"])
    worst = 0.0
    for m, row in zip(metrics, rows):
        n = [len(tok(row["prompt"] + row[k])["input_ids"]) - len(tok(row["prompt"])["input_ids"]) + 1 for k in ("chosen", "rejected")]
        p = [torch.tensor(m["logps/" + k], dtype=torch.float64) / c for k, c in zip(("chosen", "rejected"), n)]
        worst = max(worst, apart(m["loss"], float(loss(*p))))
    tap.ok(worst <= LIMIT, f"{name}: the loss of the log-probabilities within {worst:.1e}")


def run(case):
    """An exception is a failed case, not the end of the script."""
    try:
        case()
    except Exception:
        tap.ok(False, "a comparison", traceback.format_exc().replace("\n", "\n# "))


def orpo(a, b, beta=0.2):
    odds = (a - b) - (torch.log1p(-torch.exp(a)) - torch.log1p(-torch.exp(b)))
    return -a - beta * F.logsigmoid(odds)


def main():
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    disable_progress_bars()
    with tempfile.TemporaryDirectory() as root:
        sets = make_rows(root)
        data = {name: os.path.join(root, name + ".jsonl") for name in sets}
        llama, qwen = os.path.join(root, "llama"), os.path.join(root, "qwen")
        make_model("Llama", sets["texts"], llama)
        make_model("Qwen2", sets["texts"], qwen)
        full = ["--lora-r", "0"]
        run(lambda: compare("all weights texts", llama, sets["texts"], data["texts"], root, full, False))
        run(lambda: compare("adapters texts", llama, sets["texts"], data["texts"], root, [], True))
        run(lambda: compare("all weights conversations", qwen, sets["chats"], data["chats"], root, full, False))
        run(lambda: compare("whole conversations", qwen, sets["wholes"], data["wholes"], root, full, False))
        for kind in "hinge", "ipo", "sigmoid_norm":
            mine = full + (["--length-normalize"] if kind == "sigmoid_norm" else ["--loss", kind]) + ["--beta", "0.3"]
            run(lambda: compare(kind, llama, sets["texts"], data["texts"], root, mine, False, loss_type=[kind],
                                            beta=0.3))
        kto = ["--loss", "kto", "--batch-size", str(ANSWERS)]
        weights = {"beta": 0.3, "desirable_weight": 1.4, "undesirable_weight": 0.6}
        mine = ["--beta", "0.3", "--desirable-weight", "1.4", "--undesirable-weight", "0.6"]
        run(lambda: compare_kto("kto all weights", llama, sets["answers"], data["answers"], root, full + kto, False))
        run(lambda: compare_kto("kto adapters", llama, sets["answers"], data["answers"], root, kto + mine, True, **weights))
        run(lambda: compare_kto("kto conversations", qwen, sets["replies"], data["replies"], root, full + kto + mine, False, **weights))
        run(lambda: compare_kto("kto pairs", llama, sets["texts"], data["texts"], root, full + kto, False))
        run(lambda: compare_kto("kto whole conversations", qwen, sets["wholes"], data["wholes"], root, full + kto, False))
        run(lambda: functions("simpo", llama, data["texts"], root, full + ["--loss", "simpo", "--beta", "2", "--simpo-gamma", "0.7"],
                                          lambda a, b: -F.logsigmoid(2 * (a - b) - 0.7)))
        run(lambda: functions("orpo", llama, data["texts"], root, full + ["--loss", "orpo", "--beta", "0.2"], orpo))
    tap.done()


main()
