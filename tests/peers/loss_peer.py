"""The losses of tests/recipes against PyTorch's: label smoothing, z-loss, distillation, DPO.

Each recipe trains a tiny model for two steps of two micro-batches each, by plain SGD: the change of the weights is then the
learning rate times the gradient. Beside it the same loss is written with PyTorch's own functions, in float64, and
differentiated by autograd at the same weights. Held against it:
  - the whole gradient, ||g - g_torch|| / ||g_torch||, and each tensor's by itself;
  - the logged loss and gradient norm, so the division once a step, and what DPO logs beside them.
The second step begins from the weights that the first one saved. A comparison that could not fail is no comparison: the same
gradient is held against PyTorch's with the loss's parameter 1% off, which must be seen.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

import tap
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH, ACCUMULATE, STEPS, LENGTH = 4, 2, 2, 40
LIMIT, TENSOR_LIMIT, LOSS_LIMIT = 1e-5, 3e-5, 1e-6
MARK = " =>"  # what follows it is trained

BASE = dict(max_position_embeddings=64, rms_norm_eps=1e-5, bos_token_id=0, eos_token_id=0)
SMALL = BASE | dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
LARGE = BASE | dict(hidden_size=48, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4)
STUDENTS = {
    "Llama": SMALL | dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=False),
    "Granite": SMALL | dict(embedding_multiplier=3.0, attention_multiplier=0.35, residual_multiplier=0.7, logits_scaling=2.0,
                            tie_word_embeddings=True),
}


def texts():
    r = random.Random(11)
    words = ["".join(r.choice("abcdefghiklmnoprstuw") for _ in range(r.randint(2, 6))) for _ in range(50)]
    some = lambda most: " ".join(r.choice(words) for _ in range(r.randint(2, most)))
    rows = []
    for _ in range(BATCH * ACCUMULATE * STEPS // 2):
        question = some(8)
        rows += [question + MARK + " " + some(9) for _ in range(2)]  # of a pair: one question, two answers
    return rows


def tokenizer(rows, folder):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(rows, trainers.BpeTrainer(vocab_size=330, special_tokens=["<|endoftext|>"], show_progress=False,
                                                    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    fast = PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<|endoftext|>", eos_token="<|endoftext|>")
    fast.save_pretrained(folder)
    return fast


def make_model(family, options, folder, vocabulary, seed):
    config = getattr(transformers, family + "Config")(vocab_size=vocabulary, **options)
    torch.manual_seed(seed)
    model = getattr(transformers, family + "ForCausalLM")(config)
    with torch.no_grad():
        for n, p in model.named_parameters():
            p.copy_(torch.randn(p.shape) * 0.15 + (1.0 if "norm" in n else 0.0))
    model.save_pretrained(folder)


def example(tok, text):
    """ids, and for each the token that follows where that is trained, else -100."""
    e = tok(text, return_offsets_mapping=True)
    ids, begins, answer = e["input_ids"], [o[0] for o in e["offset_mapping"]], text.index(MARK) + len(MARK)
    assert len(ids) <= LENGTH, len(ids)
    return ids, [i if b >= answer else -100 for i, b in zip(ids[1:], begins[1:])] + [-100]


def batch(rows):
    n = max(len(ids) for ids, _ in rows)
    ids, labels = torch.zeros(len(rows), n, dtype=torch.long), torch.full((len(rows), n), -100)
    for b, (i, l) in enumerate(rows):
        ids[b, : len(i)], labels[b, : len(i)] = torch.tensor(i), torch.tensor(l)
    return ids, labels


def load(folder, like=None):
    model = AutoModelForCausalLM.from_pretrained(like or folder, dtype=torch.float64, attn_implementation="eager").eval()
    if like:
        missing = model.load_state_dict({k: v.double() for k, v in load_file(os.path.join(folder, "model.safetensors")).items()}, strict=False)
        assert not missing.unexpected_keys and set(missing.missing_keys) <= {"lm_head.weight"}, missing
    return model


# ---- the losses: a sum over a micro-batch, and what the step divides it by ----


def rows_of_logits(model, ids, labels):
    return model(input_ids=ids, use_cache=False).logits[labels != -100]


def label_smoothing(model, other, ids, labels, e):
    logits, at = rows_of_logits(model, ids, labels), labels[labels != -100]
    return F.cross_entropy(logits, at, label_smoothing=e, reduction="sum"), len(at), {}


def z_loss(model, other, ids, labels, z):
    logits, at = rows_of_logits(model, ids, labels), labels[labels != -100]
    return F.cross_entropy(logits, at, reduction="sum") + z * torch.logsumexp(logits, -1).square().sum(), len(at), {}


def distillation(model, other, ids, labels, T, k=0):
    q = F.log_softmax(rows_of_logits(model, ids, labels) / T, -1)
    with torch.no_grad():
        p = F.log_softmax(rows_of_logits(other, ids, labels) / T, -1)
    if k:  # the rest of the vocabulary as one token
        top = p.topk(k, -1).indices
        lump = lambda x: torch.cat([x.gather(-1, top), torch.logsumexp(x.scatter(-1, top, -torch.inf), -1, keepdim=True)], -1)
        p, q = lump(p), lump(q)
    return T * T * F.kl_div(q, p, reduction="sum", log_target=True), len(q), {}


def dpo(model, other, ids, labels, beta):
    def sums(m):
        logits = m(input_ids=ids, use_cache=False).logits
        p = F.log_softmax(logits, -1).gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        return (p * (labels != -100)).sum(-1)
    with torch.no_grad():
        reference = sums(other)
    reward = beta * (sums(model) - reference)
    margin = reward[0::2] - reward[1::2]
    return -F.logsigmoid(margin).sum(), len(margin), {"rewards/margins": float(margin.detach().sum()),
                                                      "rewards/accuracies": float((margin > 0).sum())}


# name, recipe, PyTorch's, its parameter, the recipe's options
CASES = [
    ("label smoothing", "label_smoothing", label_smoothing, 0.1, ["--label-smoothing", "0.1"]),
    ("z-loss", "z_loss", z_loss, 0.05, ["--z-loss", "0.05"]),
    ("distillation", "distillation", distillation, 2.0, ["--temperature", "2"]),
    ("distillation, top 16", "distillation", lambda m, o, i, l, T: distillation(m, o, i, l, T, 16), 1.5,
     ["--temperature", "1.5", "--top-k", "16"]),
    ("DPO", "dpo", dpo, 0.3, ["--beta", "0.3"]),
]


def train(program, folder, data, output, lr, options):
    command = [program, "--model", folder, "--dataset", data, "--response-template", MARK, "--output", output, "--batch-size", str(BATCH),
               "--accumulate", str(ACCUMULATE), "--max-steps", str(STEPS), "--max-length", str(LENGTH), "--no-shuffle", "--lr", str(lr),
               "--schedule", "constant", "--warmup-steps", "0", "--weight-decay", "0", "--clip-norm", "0", "--optimizer", "sgd",
               "--append-token", "none", "--save-every", "1", "--save-dtype", "float32", "--threads", "2", "--dtype", "float32"] + options
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"exit {run.returncode}: {' '.join(command)}: {run.stderr[-1500:]} {run.stdout[-500:]}"
    with open(os.path.join(output, "metrics.jsonl")) as f:
        return [json.loads(line) for line in f]


def torch_step(function, model, other, rows, parameter):
    """The gradient of one step by parameter's name, its loss, what is logged beside it."""
    model.zero_grad()
    total, count, beside = 0.0, 0, {}
    for at in range(0, len(rows), BATCH):
        loss, n, more = function(model, other, *batch(rows[at : at + BATCH]), parameter)
        loss.backward()
        total, count = total + float(loss.detach()), count + n
        for k, v in more.items():
            beside[k] = beside.get(k, 0.0) + v
    return {n: p.grad / count for n, p in model.named_parameters()}, total / count, {k: v / count for k, v in beside.items()}


def norm_of(tensors):
    return sum(float(t.square().sum()) for t in tensors) ** 0.5


def learning_rate(model, gradient):
    """A step moves the weights by a twentieth of their norm: then their rounding to float32 hides nothing of the gradient."""
    return float(f"{0.05 * norm_of(p.detach() for p in model.parameters()) / norm_of(gradient(model).values()):.2g}")


def distance(ours, theirs):
    """Over all tensors, and the worst of one against the larger of its own norm and 1e-3 of the whole."""
    d, norm = norm_of(ours[n] - g for n, g in theirs.items()), norm_of(theirs.values())
    return d / norm, max(float((ours[n] - g).norm()) / max(float(g.norm()), 1e-3 * norm) for n, g in theirs.items())


def compare(name, program, function, parameter, options, family, root, rows):
    folder, teacher = os.path.join(root, family), os.path.join(root, "teacher")
    output = os.path.join(root, f"{family}-{name}")
    if function is not dpo and "distillation" in name:
        options = options + ["--teacher", teacher]
    other = load(folder if function is dpo else teacher)
    lr = learning_rate(load(folder), lambda m: torch_step(function, m, other, rows[: BATCH * ACCUMULATE], parameter)[0])
    metrics = train(program, folder, os.path.join(root, "rows.jsonl"), output, lr, options)
    whole, tensor, control, logged = [], [], [], []
    for step in range(STEPS):
        before = folder if step == 0 else os.path.join(output, f"checkpoint-{step}")
        model = load(before, like=folder)
        after = load_file(os.path.join(output, f"checkpoint-{step + 1}", "model.safetensors"))
        at = rows[step * BATCH * ACCUMULATE : (step + 1) * BATCH * ACCUMULATE]
        theirs, loss, beside = torch_step(function, model, other, at, parameter)
        ours = {n: (p.detach() - after[n].double()) / lr for n, p in model.named_parameters()}
        e, worst = distance(ours, theirs)
        whole.append(e)
        tensor.append(worst)
        pairs = [("loss", loss), ("grad_norm", norm_of(theirs.values()))] + list(beside.items())
        logged.append(max(abs(metrics[step][k] - v) / max(abs(v), 1 if k in beside else 0) for k, v in pairs))
        control.append(distance(ours, torch_step(function, model, other, at, parameter * 1.01)[0])[0])
    for step in range(STEPS):
        tap.ok(whole[step] <= LIMIT and tensor[step] <= TENSOR_LIMIT,
               f"{name}, {family}, step {step + 1}: gradient as PyTorch's (apart by {whole[step]:.1e}, one tensor {tensor[step]:.1e})")
        tap.ok(logged[step] <= LOSS_LIMIT,
               f"{name}, {family}, step {step + 1}: what is logged (apart by {logged[step]:.1e})", str(metrics[step]))
    tap.ok(min(control) > 10 * LIMIT, f"{name}, {family}: a parameter 1% off would be seen (apart by {min(control):.1e})")


transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(2)
with tempfile.TemporaryDirectory() as root:
    names = sorted({c[1] for c in CASES})
    tree = os.path.join(root, "tree")
    built = subprocess.run(["sh", os.path.join(HERE, "..", "recipes", "build.sh"), tree] + [f"tests/recipes/{n}.c" for n in names],
                           capture_output=True, text=True, timeout=600, env=os.environ | {"BUILD": os.environ.get("BUILD", "build")})
    if not tap.ok(built.returncode == 0, "the recipes build", built.stdout[-2000:] + built.stderr[-2000:]):
        tap.done()
    rows = texts()
    tok = tokenizer(rows, os.path.join(root, "Llama"))
    vocabulary = len(tok) + 7
    for n, (family, options) in enumerate(STUDENTS.items()):
        tok.save_pretrained(os.path.join(root, family))
        make_model(family, options, os.path.join(root, family), vocabulary, n)
    tok.save_pretrained(os.path.join(root, "teacher"))
    make_model("Qwen3", LARGE | dict(head_dim=12, tie_word_embeddings=True), os.path.join(root, "teacher"), vocabulary, 7)
    with open(os.path.join(root, "rows.jsonl"), "w") as f:
        f.writelines(json.dumps({"text": x}) + "\n" for x in rows)
    examples = [example(tok, x) for x in rows]
    for name, recipe, function, parameter, options in CASES:
        for family in STUDENTS:
            if len(sys.argv) > 1 and not any(w in name for w in sys.argv[1:]):
                continue
            try:
                compare(name, os.path.join(tree, "build", recipe), function, parameter, options, family, root, examples)
            except Exception as problem:
                tap.ok(False, f"{name}, {family}", repr(problem)[:3000])
tap.done()
