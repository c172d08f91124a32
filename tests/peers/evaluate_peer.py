"""evaluate's log-probabilities against transformers': pairs, their accuracies, answers, bits per byte.

Tiny models of our init_model, read by transformers. Held against it, for every row of a file:
  - the sum of log p of the chosen and of the rejected answer, with their end tokens, and how many tokens they have;
  - pair_accuracy and pair_accuracy_norm over the rows;
  - of prompts with answers the loss, and bits per byte over the tokens that are no special ones;
  - of plain texts the same.
"""
import json
import math
import os
import random
import subprocess
import tempfile

import tap

try:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
except ImportError as why:
    tap.skip("evaluate beside transformers", why)
    tap.done()

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def make_rows(rng):
    words = ["".join(rng.choice("abcdefghiklmnoprstuw") for _ in range(rng.randint(2, 6))) for _ in range(40)] + ["naïve", "東京", "🙂"]
    some = lambda most: " ".join(rng.choice(words) for _ in range(rng.randint(1, most)))
    return [{"prompt": some(8), "chosen": " " + some(8), "rejected": " " + some(8)} for _ in range(30)]


class Theirs:
    def __init__(self, folder):
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.tok = AutoTokenizer.from_pretrained(folder)
        self.end = self.tok.eos_token_id

    def log_p(self, prompt, answer):
        """log p of each token of the answer and of the end token, and their ids."""
        ids = self.tok(prompt + answer, add_special_tokens=True)["input_ids"] + [self.end]
        begin = max(1, len(self.tok(prompt, add_special_tokens=True)["input_ids"]) if prompt else 1)
        with torch.no_grad():
            logits = self.model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        return [logits[i - 1, ids[i]].item() for i in range(begin, len(ids))], ids[begin:]


def near(a, b, limit=1e-4):
    return abs(a - b) <= limit * max(1, abs(b))


def judge(root, name, rows, *more):
    path, out = os.path.join(root, name + ".jsonl"), os.path.join(root, name)
    with open(path, "w") as f:
        f.writelines(json.dumps(row) + "\n" for row in rows)
    run(os.path.join(BUILD, "evaluate"), "--model", os.path.join(root, "model"), "--dataset", path, "--max-new-tokens", "1", "--output", out, *more)
    with open(os.path.join(out, "rows.jsonl")) as f:
        lines = [json.loads(line) for line in f]
    with open(os.path.join(out, "report.json")) as f:
        return lines, json.load(f)


def pairs(root, theirs, rows):
    lines, report = judge(root, "pairs", rows)
    by_sum = by_token = 0
    for row, line in zip(rows, lines):
        chosen, rejected = [theirs.log_p(row["prompt"], row[side])[0] for side in ("chosen", "rejected")]
        by_sum += sum(chosen) > sum(rejected)
        by_token += sum(chosen) / len(chosen) > sum(rejected) / len(rejected)
        if (line["loss_tokens"], line["rejected_loss_tokens"]) != (len(chosen), len(rejected)):
            return f"{line['loss_tokens']} and {len(chosen)} tokens for {row}"
        if not near(line["loss_sum"], -sum(chosen)) or not near(line["rejected_loss_sum"], -sum(rejected)):
            return f"{line['loss_sum']}, {line['rejected_loss_sum']} and {-sum(chosen)}, {-sum(rejected)} for {row}"
    if not 0 < by_sum < len(rows) or by_sum == by_token:
        return f"the rows do not tell both accuracies apart: {by_sum}, {by_token} of {len(rows)}"
    if not near(report["pair_accuracy"], by_sum / len(rows), 1e-12) or not near(report["pair_accuracy_norm"], by_token / len(rows), 1e-12):
        return f"{report['pair_accuracy']}, {report['pair_accuracy_norm']} and {by_sum}, {by_token} of {len(rows)}"


def losses(root, theirs, name, rows, parts):
    _, report = judge(root, name, rows, "--metrics", "losses")
    nats = text = tokens = size = 0
    for row in rows:
        prompt, answer = parts(row)
        log_p, ids = theirs.log_p(prompt, answer)
        special = [i in theirs.tok.all_special_ids for i in ids]
        nats -= sum(log_p)
        text -= sum(p for p, s in zip(log_p, special) if not s)
        tokens += len(ids)
        size += sum(len(theirs.tok.decode([i]).encode()) if not s else 0 for i, s in zip(ids, special))
        if not special[-1] or any(special[:-1]):
            return "the end token is no special one"
    want = {"loss": nats / tokens, "perplexity": math.exp(nats / tokens), "bits_per_byte": text / (size * math.log(2))}
    for metric, value in want.items():
        if not near(report[metric], value):
            return f"{metric}: {report[metric]} and {value}"


def main():
    with tempfile.TemporaryDirectory() as root:
        run(os.path.join(BUILD, "init_model"), "--layers", "2", "--hidden-size", "64", "--intermediate-size", "128", "--heads", "2",
            "--kv-heads", "1", "--vocab-size", "300", "--max-positions", "512", "--seed", "3", "--dtype", "float32", os.path.join(root, "model"))
        theirs = Theirs(os.path.join(root, "model"))
        rows = make_rows(random.Random(5))
        tap.case("pairs: log p of both answers, and both accuracies", pairs, root, theirs, rows)
        ascii_rows = [r for r in rows if (r["prompt"] + r["chosen"]).isascii()]  # a byte of a longer character is no text alone
        answered = [{"prompt": r["prompt"], "completion": r["chosen"]} for r in ascii_rows]
        tap.case("answers: loss, perplexity, bits per byte without the end token", losses, root, theirs, "answers", answered,
                 lambda r: (r["prompt"], r["completion"]))
        tap.case("plain texts: the same", losses, root, theirs, "texts", [{"text": r["prompt"]} for r in ascii_rows if len(r["prompt"]) > 4],
                 lambda r: ("", r["text"]))


main()
tap.done()
