"""The model cards of checkpoints, read by huggingface_hub: its reader of front matter has the fields the Hub knows, and a card that it
writes again stays the same. transformers and PEFT load the folders with their cards."""
import os
import subprocess
import tempfile

import tap
from huggingface_hub import ModelCard, metadata_load

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
DATA = os.path.abspath("datasets/stories.jsonl")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def run(*arguments):
    done = subprocess.run([os.path.join(BUILD, arguments[0]), *arguments[1:]], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr}")


def front(folder, expected):
    got = metadata_load(os.path.join(folder, "README.md"))
    if got != expected:
        return f"{got}, expected {expected}"
    card = ModelCard.load(os.path.join(folder, "README.md"))
    data = card.data.to_dict()
    if data != expected or card.data.tags != expected["tags"] or card.data.base_model != expected.get("base_model"):
        return f"{data}, expected {expected}"
    return "" if ModelCard(card.content).data.to_dict() == expected and card.text.lstrip().startswith("# ") else f"another text: {card.text[:80]!r}"


def main(root):
    os.chdir(root)
    cache = os.path.join(root, "cache")
    os.environ["HF_HUB_CACHE"] = cache
    base = os.path.join(cache, "models--me--base", "snapshots", COMMIT)
    run("init_model", "--layers", "1", "--hidden-size", "32", "--intermediate-size", "64", "--heads", "2", "--kv-heads", "1",
        "--vocab-size", "300", "--max-positions", "64", "--seed", "1", "model")
    os.makedirs(os.path.dirname(base))
    os.rename("model", base)
    os.remove(os.path.join(base, "tune_weights.json"))
    with open(os.path.join(base, "README.md"), "w") as f:
        f.write("---\nlanguage:\n- en\nlicense: other\nlicense_name: my-terms\nlicense_link: LICENSE\n---\n# Base\n")
    os.makedirs("data/rows")
    os.symlink(DATA, "data/rows/train.jsonl")
    rest = ["--max-length", "32", "--max-steps", "3", "--threads", "1", "--eval-every", "2", "--train-split", "0.95"]
    run("finetune_full", "--model", "me/base", "--dataset", "me/rows", *rest, "--output", "full")
    run("finetune_lora", "--model", "me/base", "--dataset", DATA, *rest, "--output", "lora")
    shared = {"license": "other", "license_name": "my-terms", "license_link": "https://huggingface.co/me/base/blob/main/LICENSE",
              "pipeline_tag": "text-generation", "base_model": "me/base"}
    tap.case("a model's card", front, "full/checkpoint-final",
             {**shared, "base_model_relation": "finetune", "library_name": "transformers", "datasets": ["me/rows"], "tags": ["tune.c"]})
    tap.case("an adapter's card", front, "lora/checkpoint-final",
             {**shared, "base_model_relation": "adapter", "library_name": "peft", "tags": ["tune.c", "lora"]})


with tempfile.TemporaryDirectory() as root:
    main(root)
    os.chdir("/")
tap.done()
