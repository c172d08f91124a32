#!/usr/bin/env python3
"""saved_chat_peer.py - a folder trained on conversations, used as transformers' users do: apply_chat_template and generate.

A tiny model without a chat template learns twelve answers by heart, with --chat-template chatml. Its folder then has the
template and the end-of-turn token: apply_chat_template writes the ids that were trained on, and generate says the answer and
stops. The same for an adapter's folder through PEFT, and for the adapter merged.
BUILD: the build folder (default build).
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap
import torch
from peft import AutoPeftModelForCausalLM
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

BUILD = os.environ.get("BUILD", "build")
SHAPE = dict(hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=256, rms_norm_eps=1e-5, bos_token_id=0, eos_token_id=0, tie_word_embeddings=False)
COLOURS = ["red", "green", "blue", "white"]
ROWS = [{"messages": [{"role": "user", "content": f"{thing} {i}?"}, {"role": "assistant", "content": f"{COLOURS[(i * 7 + k) % 4]} {thing}"}]}
        for k, thing in enumerate(["fox", "owl", "wren"]) for i in range(4)]


def make_model(folder):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator([m["content"] for r in ROWS for m in r["messages"]],
                          trainers.BpeTrainer(vocab_size=300, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
                                              show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    fast = PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<|endoftext|>", eos_token="<|endoftext|>")
    fast.save_pretrained(folder)
    torch.manual_seed(3)
    LlamaForCausalLM(LlamaConfig(vocab_size=len(fast), **SHAPE)).save_pretrained(folder)


def run(*command):
    done = subprocess.run([os.path.join(BUILD, command[0]), *command[1:]], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


def trained_ids(model, rows, number, template="chatml"):
    """The ids of a row as --show-tokens prints them."""
    out = run("finetune_full", "--model", model, "--dataset", rows, "--chat-template", template, "--show-tokens", str(number + 1))
    part = out.split(f"row {number},")[1].split("\nrow ")[0]
    return [int(x) for x in re.findall(r"^ *\d+ +(\d+)  (?:masked|trained)", part, re.M)]


def answers(model, folder):
    tok = AutoTokenizer.from_pretrained(folder)
    for row in ROWS:
        question, answer = row["messages"]
        ids = tok.apply_chat_template([question], add_generation_prompt=True, return_tensors="pt", return_dict=True)
        out = model.generate(**ids, max_new_tokens=40, do_sample=False)[0, ids["input_ids"].shape[1]:]
        said = tok.decode(out)
        if said != answer["content"] + "<|im_end|>":
            return f"{question['content']}: {said!r}, expected {answer['content']!r} and the end of the turn"
    return ""


def main():
    warnings.simplefilter("ignore")
    if not os.path.exists(os.path.join(BUILD, "finetune_full")):
        tap.skip("saved conversations", f"{BUILD} has no finetune_full")
        tap.done()
    with tempfile.TemporaryDirectory() as root:
        at = lambda name: os.path.join(root, name)
        make_model(at("base"))
        with open(at("rows.jsonl"), "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in ROWS)
        common = ["--model", at("base"), "--dataset", at("rows.jsonl"), "--chat-template", "chatml", "--max-length", "64", "--batch-size", "12",
                  "--weight-decay", "0"]
        run("finetune_full", *common, "--lr", "3e-3", "--epochs", "150", "--output", at("full"))
        full = at("full/checkpoint-final")
        tok = AutoTokenizer.from_pretrained(full)
        mine = [tok.apply_chat_template(r["messages"], return_dict=False) for r in ROWS]
        tap.ok(all(mine[i] == trained_ids(at("base"), at("rows.jsonl"), i) for i in (0, 5)), "apply_chat_template writes the ids that were trained on")
        model = AutoModelForCausalLM.from_pretrained(full).eval()
        tap.ok(model.generation_config.eos_token_id == [2, 0], "generation_config ends at the turn's end, and at the text's",
               model.generation_config.eos_token_id)
        tap.case("generate says the answers and stops", answers, model, full)
        run("finetune_full", *[x if x != at("base") else full for x in common if x not in ("--chat-template", "chatml")], "--max-steps", "1", "--lr",
            "0", "--output", at("again"))
        tap.ok(AutoModelForCausalLM.from_pretrained(at("again/checkpoint-final")).generation_config.eos_token_id == [2, 0],
               "trained on from there by its own template: the same tokens end it")
        shutil.copytree(at("base"), at("bare"))  # only its config.json names the end token, which the template needs
        os.remove(at("bare/tokenizer_config.json"))
        run("finetune_full", *[x.replace(at("base"), at("bare")).replace("chatml", "plain") for x in common], "--max-steps", "1", "--output",
            at("plain"))
        tok = AutoTokenizer.from_pretrained(at("plain/checkpoint-final"))
        tap.ok(tok.apply_chat_template(ROWS[0]["messages"], return_dict=False) == trained_ids(at("bare"), at("rows.jsonl"), 0, "plain"),
               "a folder without tokenizer_config.json gets the end token that its template writes")
        run("finetune_lora", *common, "--lr", "4e-3", "--epochs", "500", "--lora-r", "64", "--lora-alpha", "64", "--output", at("lora"))
        adapter = at("lora/checkpoint-final")
        live = AutoPeftModelForCausalLM.from_pretrained(adapter).eval()
        live.generation_config = type(live.generation_config).from_pretrained(adapter)
        tap.case("an adapter's folder through PEFT", answers, live, adapter)
        run("merge_adapter", "--model", at("base"), "--adapter", adapter, "--output", at("merged"))
        tap.case("the adapter merged", answers, AutoModelForCausalLM.from_pretrained(at("merged")).eval(), at("merged"))
    tap.done()


main()
