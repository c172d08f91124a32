#!/usr/bin/env python3
"""added_tokens_peer.py - tokens that --add-tokens adds, against transformers and PEFT, on tiny models that are tied or not, with
rows of the vocabulary to spare or without.

  - the saved tokenizer encodes as transformers' own after add_tokens(special_tokens=True);
  - the model begins as transformers' after resize_token_embeddings, new rows the mean of the others; twenty AdamW steps have
    PyTorch's losses; transformers loads the folder and computes PyTorch's logits;
  - an adapter with --modules-to-save: twenty steps have the losses of PEFT with modules_to_save on the grown base; PEFT loads
    the folder, by itself or on a base that was grown, and it and the merged folder compute the same.
BUILD: the build folder (default build).
"""
import json
import os
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap
import torch
from peft import AutoPeftModelForCausalLM, PeftModel
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

BUILD = os.environ.get("BUILD", "build")
SHAPE = dict(hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=128, rms_norm_eps=1e-5, bos_token_id=0, eos_token_id=0)
MORE = ["<|im_start|>", "<|im_end|>", "fox", "<|é \"q\"|>"]  # one may be a word of the vocabulary, or none
TEXT = "<|im_start|>user\nwhere is the fox, or was it an owl?<|im_end|><|é \"q\"|> the fox is red <|im_end|>the end"
STEPS, LR = 20, 3e-3
LIMIT = 1e-5  # of the losses; what is observed is printed


def make_base(folder, tied, spare):
    text = ["the fox is red or blue? an owl was where the wren is\n" * 3]
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(text, trainers.BpeTrainer(vocab_size=290, special_tokens=["<|endoftext|>"], show_progress=False,
                                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    PreTrainedTokenizerFast(tokenizer_object=tok, eos_token="<|endoftext|>").save_pretrained(folder)
    torch.manual_seed(4)
    config = LlamaConfig(vocab_size=tok.get_vocab_size() + spare, tie_word_embeddings=tied, **SHAPE)
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for n, p in model.named_parameters():
            if p.dim() == 2:
                p.copy_(torch.randn(p.shape) * 0.15)
    model.save_pretrained(folder)


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def grown(folder, ids):
    """transformers' model with rows for so many ids."""
    model = load(folder)
    old = model.config.vocab_size
    if ids > old:
        model.resize_token_embeddings(ids, mean_resizing=False)
        with torch.no_grad():
            for m in {model.get_input_embeddings().weight, model.get_output_embeddings().weight}:
                m[old:] = m[:old].double().mean(0).float()
    return model


def their_ids(folder):
    tok = AutoTokenizer.from_pretrained(folder)
    tok.add_tokens(MORE, special_tokens=True)
    return tok(TEXT).input_ids, len(tok)


def train(model, ids):
    x, losses = torch.tensor([ids]), []
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=LR, weight_decay=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(x, labels=x).loss
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    return losses


def logits(model, ids):
    with torch.no_grad():
        return model.eval()(torch.tensor([ids])).logits.double()


def distance(a, b):
    return float((a - b).norm() / b.norm())


def run(*command):
    said = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if said.returncode:
        raise RuntimeError(said.stderr[-2000:])


def recipe(program, base, root, output, *options):
    rows = os.path.join(root, "row.jsonl")
    with open(rows, "w") as f:
        f.write(json.dumps({"text": TEXT}) + "\n")
    run(os.path.join(BUILD, program), "--model", base, "--dataset", rows, "--append-token", "none", "--epochs", STEPS, "--lr", LR,
        "--schedule", "constant", "--warmup-ratio", 0, "--clip-norm", 0, "--weight-decay", 0.01, "--decay", "all", "--max-length", 128,
        "--save-dtype", "float32", "--add-tokens", ",".join(MORE), "--output", output, *options)
    with open(os.path.join(output, "metrics.jsonl")) as f:
        losses = [r["loss"] for r in map(json.loads, f) if "loss" in r and "step_s" in r]
    return os.path.join(output, "checkpoint-final"), losses


def worst(a, b):
    assert len(a) == len(b) == STEPS, (len(a), len(b))
    return max(abs(x - y) / y for x, y in zip(a, b))


def same_tokens(folder, base):
    ours, (ids, size) = AutoTokenizer.from_pretrained(folder), their_ids(base)
    if len(ours) != size or ours(TEXT).input_ids != ids:
        return f"{ours(TEXT).input_ids} {ids}"
    plain = ours.decode(ids, skip_special_tokens=True)
    return "" if not any(m in plain for m in MORE) and "owl" in plain else plain


def compare_full(base, root, output):
    ids, size = their_ids(base)
    folder, losses = recipe("finetune_full", base, root, output)
    if why := same_tokens(folder, base):
        return why
    model = grown(base, size)
    found = worst(losses, train(model, ids)), distance(logits(load(folder), ids), logits(model, ids))
    print(f"# {os.path.basename(output)}: {STEPS} losses {found[0]:.1e}, {losses[0]:.3f} to {losses[-1]:.3f}; logits {found[1]:.1e}")
    return "" if found[0] < LIMIT and found[1] < 1e-3 and losses[-1] < losses[0] / 2 else "too far"


def compare_adapter(base, root, output, names):
    ids, size = their_ids(base)
    options = ["--modules-to-save", names]
    begun, _ = recipe("finetune_lora", base, root, output + "-begun", "--lora-r", 4, "--lora-alpha", 8, "--lr", 0, *options)
    folder, losses = recipe("finetune_lora", base, root, output, "--adapter", begun)
    if why := same_tokens(folder, base):
        return why
    model = PeftModel.from_pretrained(grown(base, size), begun, is_trainable=True)
    by_step = worst(losses, train(model, ids))
    expected = logits(PeftModel.from_pretrained(grown(base, size), folder), ids)
    run(os.path.join(BUILD, "merge_adapter"), "--model", base, "--adapter", folder, "--output", output + "-merged", "--dtype", "float32")
    found = {"trained by PEFT": distance(logits(model, ids), expected), "merged": distance(logits(load(output + "-merged"), ids), expected)}
    if "," in names:  # otherwise rows of the base that PEFT grows itself are not ours
        found["loaded by itself"] = distance(logits(AutoPeftModelForCausalLM.from_pretrained(folder, dtype=torch.float32), ids), expected)
    print(f"# {os.path.basename(output)}: {STEPS} losses {by_step:.1e}, {losses[0]:.3f} to {losses[-1]:.3f}; " +
          ", ".join(f"{k} {v:.1e}" for k, v in found.items()))
    why = same_tokens(output + "-merged", base)
    good = by_step < LIMIT and max(found.values()) < 1e-3 and losses[-1] < losses[0]
    return why if why or good else "too far"


def main():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as root:
        for tied in (True, False):
            for spare in (0, 9):
                name = f"{'tied' if tied else 'untied'}, {spare} rows to spare"
                base = os.path.join(root, f"{'tied' if tied else 'untied'}-{spare}")
                make_base(base, tied, spare)
                tap.case(f"{name}: trained in full", compare_full, base, root, base + "-full")
                tap.case(f"{name}: an adapter", compare_adapter, base, root, base + "-lora", "embed_tokens,lm_head")
                if spare:
                    tap.case(f"{name}: an adapter and the embedding alone", compare_adapter, base, root, base + "-embedding", "embed_tokens")
    tap.done()


if __name__ == "__main__":
    main()
