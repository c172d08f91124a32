#!/usr/bin/env python3
"""sft_peer.py - the learning curve of finetune_lora beside TRL's SFTTrainer with PEFT, step by step.

stories260K with adapters learns 1,100 instruction rows for 200 steps, in float32. Both begin with the same adapters, take the
same rows in the same order, and use the same learning rate. Then every loss agrees within 1e-4.
The model and the rows are those of ../shared/data; without them everything is skipped.
BUILD: the build folder (default build). TUNE_SFT_SVG: a file for the picture of both curves (docs/learning-curve.svg).
"""
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
warnings.filterwarnings("ignore")
os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
import tap
import torch
import transformers
from datasets import Dataset
from datasets.utils.logging import disable_progress_bar as disable_progress_bars
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

BUILD = os.environ.get("BUILD", "build")
SHARED = os.environ.get("TUNE_SHARED", "../shared/data")
STEPS, BATCH, LENGTH, LR, LIMIT = 200, 4, 320, 1e-3, 1e-4
ALPACA = ("Below is an instruction that describes a task{}. Write a response that appropriately completes the request.\n\n"
          "### Instruction:\n{}{}\n\n### Response:\n\n")


def make_rows(path):
    """Alpaca rows as prompts and completions: what both sides read."""
    with open(os.path.join(SHARED, "text", "instruction_data.json"), encoding="utf-8") as f:
        found = json.load(f)
    rows = []
    for r in found:
        more = r.get("input", "")
        prompt = ALPACA.format(", paired with an input that provides further context" if more else "", r["instruction"],
                               f"\n\n### Input:\n{more}" if more else "")
        rows.append({"prompt": prompt, "completion": r["output"]})
    with open(path, "w") as f:
        f.writelines(json.dumps(r) + "\n" for r in rows)
    return rows


def ours(model, data, output, options, steps):
    command = [f"{BUILD}/finetune_lora", "--model", model, "--dataset", data, "--output", output, "--batch-size", str(BATCH),
               "--max-steps", str(steps), "--max-length", str(LENGTH), "--no-shuffle", "--lr", str(LR), "--schedule", "constant",
               "--warmup-steps", "0", "--weight-decay", "0", "--clip-norm", "1", "--threads", "2", "--lora-r", "16", *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, f"exit {run.returncode}: {' '.join(command)}: {run.stdout[-500:]}{run.stderr[-1500:]}"
    with open(os.path.join(output, "metrics.jsonl")) as f:
        return [json.loads(line) for line in f]


def theirs(folder, rows, adapter, root):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    model = PeftModel.from_pretrained(model, adapter, is_trainable=True)
    tok = AutoTokenizer.from_pretrained(folder)
    tok.pad_token = tok.pad_token or tok.eos_token
    config = SFTConfig(output_dir=os.path.join(root, "trl"), per_device_train_batch_size=BATCH, max_steps=STEPS, learning_rate=LR,
                       lr_scheduler_type="constant", warmup_steps=0, weight_decay=0.0, max_grad_norm=1.0, logging_steps=1,
                       save_strategy="no", report_to="none", use_cpu=True, bf16=False, max_length=LENGTH, disable_tqdm=True,
                       gradient_checkpointing=False, completion_only_loss=True)
    trainer = SFTTrainer(model=model, args=config, train_dataset=Dataset.from_list(rows), processing_class=tok)
    trainer._get_train_sampler = lambda *_: torch.utils.data.SequentialSampler(trainer.train_dataset)  # in order
    with contextlib.redirect_stdout(io.StringIO()):  # it prints every step
        trainer.train()
    return [line for line in trainer.state.log_history if "loss" in line]


def draw(svg, mine, trl, folder, root):
    """Both curves by `runs plot`, theirs as a run folder with another name."""
    both = [os.path.join(root, name) for name in ("finetune_lora", "TRL")]
    os.rename(folder, both[0])
    os.mkdir(both[1])
    shutil.copy(os.path.join(both[0], "run.json"), both[1])
    with open(os.path.join(both[1], "metrics.jsonl"), "w") as f:
        f.writelines(json.dumps({**m, "loss": t["loss"]}) + "\n" for m, t in zip(mine, trl))
    subprocess.run([f"{BUILD}/runs", "plot", *both, "--metric", "loss", "--svg", svg], check=True, capture_output=True)


def main():
    model = os.path.join(SHARED, "stories260K-hf")
    if not os.path.exists(model) or not os.path.exists(f"{BUILD}/finetune_lora"):
        tap.skip("the learning curve beside SFTTrainer", f"no {model}, or no {BUILD}/finetune_lora")
        tap.done()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    disable_progress_bars()
    with tempfile.TemporaryDirectory() as root:
        begin, model = model, os.path.join(root, "model")
        shutil.copytree(begin, model)
        tok = transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(begin, "tokenizer.json"), bos_token="<s>", eos_token="</s>")
        tok.save_pretrained(model)
        data, output = os.path.join(root, "rows.jsonl"), os.path.join(root, "run")
        rows = make_rows(data)
        ours(model, data, os.path.join(root, "begin"), ["--lr", "0"], 1)  # the adapters as they begin
        mine = ours(model, data, output, [], STEPS)
        trl = theirs(model, rows, os.path.join(root, "begin", "checkpoint-final"), root)
        assert len(mine) == len(trl) == STEPS, (len(mine), len(trl))
        worst = max((abs(m["loss"] - t["loss"]), i + 1, m["loss"], t["loss"]) for i, (m, t) in enumerate(zip(mine, trl)))
        tap.ok(worst[0] <= LIMIT, f"{STEPS} losses within {worst[0]:.1e} of SFTTrainer's", worst)
        mean = lambda losses: sum(losses) / len(losses)
        first, last = mean([m["loss"] for m in mine[:20]]), mean([m["loss"] for m in mine[-20:]])
        tap.ok(last < first - 0.3, f"the loss falls: {first:.3f} in the first 20 steps, {last:.3f} in the last 20", (first, last))
        if os.environ.get("TUNE_SFT_SVG"):
            draw(os.environ["TUNE_SFT_SVG"], mine, trl, output, root)
    tap.done()


main()
