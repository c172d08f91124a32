#!/bin/sh
# test_edit_a_recipe.sh - user 2: copies a recipe, adds a flag and a measured property in that one file, builds it both ways, runs
# it; then the worked example of docs/edit-a-recipe.md by the edits that are printed there. In a copy of the tree, so that a
# `make` beside it sees nothing of this.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
PYTHON=${TUNE_PYTHON:-python3}
san= opt=
if sanitized; then san="-fsanitize=address,undefined -fno-omit-frame-pointer" opt=OPT=-O1; fi
mkdir "$tmp/tree" && cp -a Makefile tools components recipes datasets defaults docs "$tmp/tree" && cp -a "$BUILD" "$tmp/tree/build" || exit 1
own=$PWD/tests/recipes/own_dataset.c own_recipes=$PWD/tests/recipes data=$PWD/datasets/stories.jsonl
tiny "$tmp/tiny" 1 >/dev/null || exit 1
BUILD=build
cd "$tmp/tree" || exit 1

# edit FILE - --lr-scale, which the step multiplies its learning rate by, and tokens_per_step.
edit() {
    sed -e 's|^static struct { struct tune_flags tune; } my;|static struct { struct tune_flags tune; double lr_scale; } my;|' \
        -e 's|^    TUNE_TRAINING_OPTIONS(my.tune),.*|&\n    {"lr-scale", TUNE_DOUBLE, \&my.lr_scale, "1", "(0,10]", "", "times the learning rate"},|' \
        -e 's|^    TUNE_TRAINING_PROPERTIES,|&\n    {"tokens_per_step", "tokens/step", "tokens of all finished steps / steps"},|' \
        -e 's|tune_optimizer_step(opt, |&my.lr_scale * |' \
        -e 's|^    MUST(tune_logger_report|    MUST(tune_logger_property(log, "tokens_per_step", (double)at.tokens / (double)at.step));\n&|' \
        recipes/finetune_full.c >"$1"
}
quietly() { "$@" >"$tmp/log" 2>&1 || { cat "$tmp/log"; false; }; }
build() { # its compiler says nothing
    make SAN="$san" $opt V=1 "$@" >"$tmp/log" 2>"$tmp/warnings" && [ ! -s "$tmp/warnings" ] || { cat "$tmp/log" "$tmp/warnings"; false; }
}
train() { # output, program, options...
    output=$tmp/$1 program=$2
    shift 2
    "$program" --model "$tmp/tiny" --max-length 64 --max-steps 3 --lr 1e-3 --threads 1 --output "$output" "$@"
}
holds() { $PYTHON - "$@" <<'PY'
import json, sys
what, path, lines = sys.argv[1], sys.argv[2], sys.stdin
def read(p): return json.load(open(p))
def steps(p): return [json.loads(l) for l in open(p + "/metrics.jsonl")]
if what == "describe":
    d = read(path)
    flag = [o for o in d["options"] if o["name"] == "lr_scale"][0]
    assert flag["flag"] == "--lr-scale" and flag["default"] == 1 and flag["range"] == "(0,10]", flag
    assert flag["type"] == "double" and flag["help"] == "times the learning rate" and flag["group"] == "", flag
    assert [o for o in d["options"] if o["name"] == "lr"][0]["group"] == "optimizer"
    p = [p for p in d["properties"] if p["name"] == "tokens_per_step"]
    assert p == [{"name": "tokens_per_step", "unit": "tokens/step", "help": "tokens of all finished steps / steps"}], p
elif what == "run":
    r = read(path + "/run.json")
    assert r["options"]["lr_scale"] == 0.5 and r["sources"]["lr_scale"] == "flag", r["options"]
    assert r["options"]["lr"] == 1e-3 and r["status"] == "finished", r
elif what == "half":
    a, b = steps(path), steps(sys.argv[3])
    assert len(a) == len(b) == 3
    for x, y in zip(a, b): assert x["lr"] == 0.5 * y["lr"] and x["tokens"] == y["tokens"], (x, y)
    assert a[0]["loss"] == b[0]["loss"] and a[2]["loss"] != b[2]["loss"]
elif what == "report":
    s = steps(path)
    assert read(path + "/report.json")["tokens_per_step"] == sum(x["tokens"] for x in s) / len(s)
elif what == "own":
    r, run, s = read(path + "/report.json"), read(path + "/run.json"), steps(path)
    assert r["answer_tokens"] == sum(x["labels"] for x in s) and r["training_steps"] == 25, r
    assert r["loss_last"] < 0.7 * r["loss_first"], r
    assert run["data"]["rows"] == 200 and run["options"]["sums"] == 200 and run["options"]["max_length"] == 64, run["data"]
PY
}

edit recipes/mine.c
is "five lines make the edit" test "$(diff recipes/finetune_full.c recipes/mine.c | grep -c '^>')" = 5
: >"$tmp/before"
until [ recipes/mine.c -nt "$tmp/before" ]; do touch recipes/mine.c; done
is "make build/mine, without a warning" build build/mine
none "no other file was touched" "$(find . -newer "$tmp/before" -type f ! -name 'mine*' ! -path './build/obj/recipes/mine*')"
is "--help shows the flag" eval 'build/mine --help | grep -A1 -e "--lr-scale NUMBER" | grep -q "times the learning rate; in (0,10\]; default 1"'
is "--help shows the property" eval 'build/mine --help all | grep -A1 tokens_per_step | grep -q "unit tokens/step"'
is "--describe has both" eval 'build/mine --describe >"$tmp/describe.json" && holds describe "$tmp/describe.json"'
is "it runs" quietly train half build/mine --dataset "$data" --lr_scale=0.5
is "run.json has the flag and its source" holds run "$tmp/half"
is "recipe.c is the edited source" cmp recipes/mine.c "$tmp/half/recipe.c"
is "report.json has the property" holds report "$tmp/half"
is "the flag does what the line says" eval 'quietly train whole build/finetune_full --dataset "$data" && holds half "$tmp/half" "$tmp/whole"'
status() { # expected exit code, text of the message, program and arguments
    code=$1 text=$2
    shift 2
    "$@" >"$tmp/out" 2>"$tmp/err"
    [ $? = "$code" ] && grep -qF -e "$text" "$tmp/err" || { cat "$tmp/err"; false; }
}
is "a near miss of the flag names it" status 2 "--lr-scale" build/mine --lr-scal 1
is "a value outside its range is refused" status 2 "(0,10]" build/mine --lr-scale 11

mkdir "$tmp/elsewhere"
edit "$tmp/elsewhere/theirs.c"
is "make RECIPE=, from another folder, without a warning" build RECIPE="$tmp/elsewhere/theirs.c"
is "it writes nothing beside its source" test "$(ls "$tmp/elsewhere")" = theirs.c
is "RECIPE: --describe has both" eval 'build/theirs --describe >"$tmp/describe.json" && holds describe "$tmp/describe.json"'
is "RECIPE: it runs; run.json, report.json, recipe.c" eval 'quietly train theirs build/theirs --dataset "$data" --lr-scale 0.5 &&
    holds run "$tmp/theirs" && holds report "$tmp/theirs" && cmp "$tmp/elsewhere/theirs.c" "$tmp/theirs/recipe.c"'
cp recipes/finetune_full.c "$tmp/elsewhere/finetune_full.c"
# A recipe that fails in the middle of step 4: what is saved is the plan before that step, which leaves rows out.
sed 's|^\( *\)MUST(tune_model_backward.*|&\n                if (at.step == 3 \&\& getenv("BREAK")) { tune_error_set("it broke"); tune_program_fail(); }|; s|#include "tune.h"|&\n#include <stdlib.h>|' \
    recipes/finetune_full.c >"$tmp/elsewhere/broken.c"
is "RECIPE: one that breaks" build RECIPE="$tmp/elsewhere/broken.c"
for i in $(seq 120); do
    echo "{\"prompt\": \"q$i\", \"completion\": \"it is $i\"}"
    [ $((i % 4)) = 3 ] || echo '{"prompt": "q", "completion": ""}'
done >"$tmp/half.jsonl"
for o in "--batch-size 2" "--batch-size 2 --packing --accumulate 3"; do
    half="build/broken --model $tmp/tiny --dataset $tmp/half.jsonl --append-token none --max-length 48 --epochs 2 --threads 1 $o --overwrite"
    is "broken in the middle of a step, resumed: the same bits ($o)" eval '$half --output "$tmp/whole" && ! BREAK=1 $half --output "$tmp/half" &&
        [ -d "$tmp/half/checkpoint-3" ] && build/broken --resume "$tmp/half" && (cd "$tmp" && same_run whole half)'
done
is "a RECIPE of the name of a program here is refused" eval '! make -n RECIPE="$tmp/elsewhere/finetune_full.c" 2>&1 | grep -q link &&
    make -n RECIPE="$tmp/elsewhere/finetune_full.c" 2>&1 | grep -q "another name"'

grep -v '^    {"tokens_per_step"' recipes/mine.c >"$tmp/elsewhere/forgot.c"
is "a property that is not declared is an error that names it" eval 'build RECIPE="$tmp/elsewhere/forgot.c" &&
    status 1 tokens_per_step train forgot build/forgot --dataset "$data"'

is "a recipe with a data set of its own, by callbacks" build RECIPE="$own"
is "it learns from it" eval 'quietly build/own_dataset --model "$tmp/tiny" --sums 200 --batch-size 8 --lr 3e-3 --threads 1 --output "$tmp/own" &&
    holds own "$tmp/own"'
is "--show-tokens shows its rows" eval 'build/own_dataset --model "$tmp/tiny" --show-tokens 1 | grep -q "trained *\"0\""'

# ---- what a recipe's author can do: a recipe that shows each ----
quietly build/init_model --layers 2 --hidden-size 32 --intermediate-size 64 --heads 4 --kv-heads 2 --vocab-size 400 --max-positions 64 \
    --dtype float32 --seed 5 "$tmp/small"
write() { # output, program, option...
    output=$tmp/$1 program=$2
    shift 2
    quietly "build/$program" --model "$tmp/small" --dataset "$data" --max-length 48 --batch-size 2 --threads 1 --lr 1e-2 --output "$output" "$@"
}
averaged() { $PYTHON - "$@" <<'PY'
import json, struct, sys
run, steps = sys.argv[1], int(sys.argv[2])
def tensors(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        head = json.loads(f.read(n))
        body = f.read()
    return {k: struct.unpack(f"<{(v['data_offsets'][1] - v['data_offsets'][0]) // 4}f", body[slice(*v["data_offsets"])])
            for k, v in head.items() if k != "__metadata__"}
start, average = tensors(sys.argv[3] + "/model.safetensors"), None
lines = [json.loads(l) for l in open(run + "/metrics.jsonl")]
for step in range(1, steps + 1):
    folder = f"{run}/checkpoint-{step}"
    weights, extra = tensors(folder + "/model.safetensors"), tensors(folder + "/state/extra.safetensors")
    decay = min(0.5, (1 + step) / (10 + step))
    assert abs(lines[step - 1]["ema_decay"] - decay) < 1e-15, lines[step - 1]
    average = average or start
    average = {k: [decay * a + (1 - decay) * w for a, w in zip(average[k], weights[k])] for k in weights}
    assert set(extra) == {"slow." + k for k in weights}
    worst = max(abs(a - b) for k in weights for a, b in zip(average[k], extra["slow." + k]))
    assert worst < 1e-6, worst
assert "extra_hash" in json.load(open(f"{run}/checkpoint-{steps}/state/progress.json"))
PY
}
is "ema.c builds without a warning" build RECIPE="$own_recipes/ema.c"
is "an average of the weights: as its formula, in each checkpoint" eval 'write ema ema --max-steps 4 --save-every 1 --ema-decay 0.5 && averaged "$tmp/ema" 4 "$tmp/small"'
is "it resumes: the average of the run that was not cut, bit for bit" eval 'write cut ema --max-steps 4 --save-every 1 --ema-decay 0.5 --stop-at-step 2 &&
    quietly build/ema --resume "$tmp/cut" && cmp "$tmp/ema/checkpoint-4/state/extra.safetensors" "$tmp/cut/checkpoint-4/state/extra.safetensors"'
is "another recipe does not go on from it" eval '! build/finetune_full --resume "$tmp/cut/checkpoint-2" --overwrite --allow-changed >"$tmp/log" 2>"$tmp/err" && { cat "$tmp/err"; grep -q "not of finetune_full; resume it with the program that began it" "$tmp/err"; }'
rates() { $PYTHON - "$@" <<'PY'
import json, struct, sys
model, run, plain = sys.argv[1:4]
def tensors(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        head = json.loads(f.read(n))
        body = f.read()
    return {k: struct.unpack(f"<{(v['data_offsets'][1] - v['data_offsets'][0]) // 4}f", body[slice(*v["data_offsets"])])
            for k, v in head.items() if k != "__metadata__"}
start = tensors(model + "/model.safetensors")
slow, fast = (tensors(r + "/checkpoint-final/model.safetensors") for r in (run, plain))
top = max(int(k.split(".")[2]) for k in start if ".layers." in k) + 2
for k in start:  # one step of SGD, no decay of matrices: the change is rate * gradient
    unit = 0 if "embed" in k else int(k.split(".")[2]) + 1 if ".layers." in k else top
    ratio = 0.5 ** (top - unit)
    worst = max(abs((s - a) - ratio * (f - a)) for a, s, f in zip(start[k], slow[k], fast[k]))
    moved = max(abs(f - a) for a, f in zip(start[k], fast[k]))
    assert moved > 0 and worst < 1e-6 + 1e-4 * moved, (k, worst, moved)
PY
}
is "layerwise.c builds without a warning" build RECIPE="$own_recipes/layerwise.c"
one="--max-steps 1 --optimizer sgd --weight-decay 0 --clip-norm 0 --schedule constant --warmup-ratio 0 --lr 1"
is "each layer has its own learning rate" eval 'write slow layerwise --layer-decay 0.5 $one && write fast finetune_full $one && rates "$tmp/small" "$tmp/slow" "$tmp/fast"'
is "a jump of the loss is said, a probe's loss is a metric: metrics.jsonl, metrics.csv, TensorBoard, runs plot" eval '
    write probed layerwise --layer-decay 1 --probe-every 2 --max-steps 8 --lr 3 --clip-norm 0 --optimizer sgd --logger csv,tensorboard --log-every 4 &&
    grep -q "^the loss jumped from " "$tmp/log" && [ "$(grep -c probe_loss "$tmp/probed/metrics.jsonl")" = 4 ] &&
    head -n 1 "$tmp/probed/metrics.csv" | grep -q ",probe_loss$" && grep -qa "train/probe_loss" "$tmp"/probed/events.out.tfevents.* &&
    build/runs plot "$tmp/probed" --metric probe_loss | grep -q "probe_loss"'
evaluates() { # output - no step, one evaluation, a report that holds, no checkpoint
    grep -qx "{\"step\":0,\"eval_loss\":[0-9.]*,\"eval_perplexity\":[0-9.]*}" "$tmp/$1/metrics.jsonl" && [ "$(wc -l <"$tmp/$1/metrics.jsonl")" = 1 ] &&
        grep -q "\"is_valid\":.1," "$tmp/$1/report.json" && grep -q "\"status\":.\"finished\"" "$tmp/$1/run.json" && [ ! -e "$tmp/$1"/checkpoint* ]
}
is "--max-steps 0 evaluates and trains nothing" eval 'write evaluated finetune_full --max-steps 0 --eval-dataset "$data" --eval-rows 20 && evaluates evaluated'
is "it is the loss that a run sees before its first step" eval 'write one finetune_full --max-steps 1 --lr 0 --eval-dataset "$data" --eval-rows 20 && 
    [ "$(grep -o "eval_loss\":[0-9.]*" "$tmp/one/metrics.jsonl")" = "$(grep -o "eval_loss\":[0-9.]*" "$tmp/evaluated/metrics.jsonl")" ]'

# ---- docs/edit-a-recipe.md: --freeze-layers ----
apply() { $PYTHON "$here/tests/recipes/apply.py" "$@"; } # PAGE SOURCE BLOCKS
freezes() { $PYTHON - "$@" <<'PY'
import json, os, struct, sys
model, frozen, whole = sys.argv[1:4]
def tensors(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        head = json.loads(f.read(n))
        body = f.read()
    return {k: body[slice(*v["data_offsets"])] for k, v in head.items() if k != "__metadata__"}
def read(run, name): return json.load(open(os.path.join(run, name)))
def is_frozen(name): return "embed" in name or any(f".layers.{i}." in name for i in range(3))
before, after = tensors(model + "/model.safetensors"), tensors(frozen + "/checkpoint-final/model.safetensors")
assert before.keys() == after.keys() and len(before) > 30
kept = {k for k in before if before[k] == after[k]}
assert kept == {k for k in before if is_frozen(k)}, sorted(kept)
trained = sum(len(v) // 4 for k, v in before.items() if not is_frozen(k))
total = sum(len(v) // 4 for v in before.values())
assert read(frozen, "report.json")["trained_parameters"] == trained, (read(frozen, "report.json"), trained)
assert read(whole, "report.json")["trained_parameters"] == total
moments = tensors(frozen + "/checkpoint-final/state/optimizer.safetensors")
assert {k[2:] for k in moments} == set(before) - kept and len(moments) == 2 * len(before.keys() - kept)
memory = [read(r, "report.json")["peak_anonymous_bytes"] for r in (whole, frozen)]
saved = 12 * (total - trained)  # a gradient and two moments of each; observed 0.99 of it
assert len(sys.argv) > 4 or 0.8 * saved < memory[0] - memory[1] < 1.2 * saved, (memory, saved)
def calls(run, name): return sum(r["calls"] for r in read(run, "profile.json")["rows"] if r["phase"] == "backward" and r["name"] == name)
assert (calls(whole, "attention dx"), calls(frozen, "attention dx")) == (4, 1)  # layers that backward goes through
assert (calls(whole, "embed dW"), calls(frozen, "embed dW")) == (1, 0)
assert read(frozen, "run.json")["options"]["freeze_layers"] == 3
assert read(frozen, "report.json")["loss_last"] < read(frozen, "report.json")["loss_first"]
PY
}
frozen() { # output, option...
    output=$tmp/$1
    shift
    build/frozen --model "$tmp/model" --dataset "$data" --max-length 48 --batch-size 4 --max-steps 12 --lr 3e-3 --threads 1 --output "$output" "$@"
}
quietly build/init_model --layers 4 --hidden-size 128 --intermediate-size 384 --heads 4 --kv-heads 2 --vocab-size 400 --max-positions 64 \
    --dtype float32 --seed 1 "$tmp/model"
is "the page's edits fit the recipe" eval 'apply docs/edit-a-recipe.md recipes/finetune_full.c 5 >recipes/frozen.c'
is "what they make builds without a warning" build build/frozen
# fits EXPERIMENT PROGRAM - every flag of the experiment is one of the program's, every target a property of the same unit.
fits() { "$2" --describe >"$tmp/described.json" && $PYTHON - "$1" "$tmp/described.json" <<'PY'
import json, sys
experiment, program = (json.load(open(f)) for f in sys.argv[1:])
options = {o["flag"]: o for o in program["options"]}
units = {p["name"]: p["unit"] for p in program["properties"]}
given = [a for a in experiment["arguments"] if a.startswith("--")] + [i["flag"] for i in experiment["inputs"]]
assert len(given) > 5 and len(experiment["targets"]) > 4
for flag in given:
    assert flag in options or (flag.startswith("--no-") and options["--" + flag[5:]]["type"] == "bool"), flag
for t in experiment["targets"]:
    assert units[t["identifier"]] == t["unit"], t
PY
}
is "defaults/experiments/freeze_layers.json fits it" fits defaults/experiments/freeze_layers.json build/frozen
is "it trains with three of four layers frozen" quietly frozen three --freeze-layers 3 --profile 1
is "and with none" quietly frozen zero --profile 1
is "frozen weights keep their bits, the others do not; nothing is kept or computed for them; trained_parameters is right" freezes "$tmp/model" "$tmp/three" "$tmp/zero" $san
is "all frozen: nothing to train" status 1 "no parameter is trainable" frozen none --freeze-layers 5
finish
