#!/bin/sh
# test_intervals.sh - --eval-every and --save-every: steps, a share of the run, the ends of epochs; with packing, and resumed.
. tests/tap.sh
cd "$tmp" || exit 1
tiny model 1 --dtype float32 >/dev/null
rows=$here/datasets/stories.jsonl
fit() { # NAME OPTION...
    who=$1
    shift
    "$BUILD/finetune_full" --model model --dataset "$rows" --limit 34 --max-length 24 --lr 1e-3 --threads 1 --seed 3 --train-split 0.8 \
        --output "$who" "$@" >"$who.out" 2>&1
    code=$?
    [ $code = 0 ] || tail -n 3 "$who.out"
    return $code
}
evaluated() { sed -n 's/.*"step":\([0-9]*\),.*"eval_loss".*/\1/p' "$1/metrics.jsonl" | tr '\n' ' '; }
saved() { ls "$1" | sed -n 's/^checkpoint-\([0-9]*\)$/\1/p' | sort -n | tr '\n' ' '; }
steps() { figure "$1" training_steps; }
says() { got=$("$2" "$1"); [ "$got" = "$3" ] || { echo "$1: $2 \"$got\", expected \"$3\""; return 1; }; }

is "steps, as ever" eval 'fit a --max-steps 10 --eval-every 4 --save-every 5 --keep-last 9 && says a evaluated "4 8 10 " && says a saved "4 5 8 10 "'
is "... which the plan does not repeat" eval 'grep "^# plan" a.out | grep -vq "evaluated\|saved"'
is "a share of the run: after the step that completes it" eval 'fit b --max-steps 10 --eval-every 0.25 && says b evaluated "3 5 8 10 "'
is "... in the plan" grep -q "^# plan .*; evaluated every 2.5 steps (0.25 of the run)" b.out
is "0.1 of 30 steps" eval 'fit c --max-steps 30 --eval-every 0.1 && says c evaluated "3 6 9 12 15 18 21 24 27 30 "'
is "a share below a step: each step" eval 'fit d --max-steps 4 --eval-every 0.001 && says d evaluated "1 2 3 4 "'
is "the ends of epochs" eval 'fit e --epochs 2.5 --batch-size 4 --eval-every epoch --save-every epoch --keep-last 9 && n=$(sed -n "s/.*evaluated every \([0-9]*\) steps (epoch); saved every [0-9]* steps (epoch).*/\1/p" e.out) && [ "$n" -gt 4 ] && says e evaluated "$n $((2 * n)) $(steps e) " && says e saved "$n $((2 * n)) $(steps e) "'
is "packed rows: the ends of epochs" eval 'fit f --epochs 3 --packing --max-length 96 --batch-size 2 --eval-every epoch && grep -q "^# plan .*; evaluated after each epoch, by rows, since --packing fixes no number of steps" f.out && [ "$(evaluated f | wc -w)" = 3 ] && sed -n "/eval_loss/d; s/.*\"step\":\([0-9]*\),.*\"epoch\":\([123]\)[,}].*/\1/p" f/metrics.jsonl | tr "\n" " " >ends && says f evaluated "$(cat ends)"'
is "... and shares, of the rows" eval 'fit g --epochs 2 --packing --max-length 96 --batch-size 2 --eval-every 0.5 && grep -q "^# plan .*; evaluated after each 0.5 of the run, by rows" g.out && [ "$(evaluated g | wc -w)" = 2 ]'

# ---- checkpoints that were only the best ----
is "the best one before goes, and one that is due stays" eval 'fit h --epochs 3 --batch-size 4 --eval-every 1 --save-every epoch && n=$(sed -n "s/.*; saved every \([0-9]*\) steps.*/\1/p" h.out) && says h saved "$n $((2 * n)) $((3 * n)) "'

# ---- resumed ----
lines() { grep eval_loss "$1/metrics.jsonl" | sed 's/"elapsed_s":[^,}]*//; s/"[a-z_]*_s":[^,}]*//g'; }
same() { lines "$1" >a.txt && lines "$2" >b.txt && diff a.txt b.txt && [ "$(saved "$1")" = "$(saved "$2")" ] && same_run "$1" "$2"; }
for o in "--eval-every epoch --save-every 0.2" "--eval-every 0.3 --save-every epoch" "--eval-every 0.3 --save-every epoch --packing --max-length 96"; do
    k=$((k + 1))
    for at in 1 3 7; do
        is "$o, resumed behind step $at" eval "[ -d w$k ] || fit w$k --epochs 3 --batch-size 4 $o; fit s$k$at --epochs 3 --batch-size 4 $o --stop-at-step $at &&
            rm -rf s$k$at/checkpoint-final && '$BUILD/finetune_full' --resume s$k$at >said.out 2>&1 || { cat said.out; false; } && lines w$k >a.txt && lines s$k$at >b.txt && diff a.txt b.txt && same_run w$k s$k$at"
    done
done
strip() { sed -i '/"fraction"\|"epoch_before"\|"fraction_before"/d' "$1"/checkpoint-*/state/progress.json && ! grep -q _before "$1"/checkpoint-3/state/progress.json; }
is "a run of an earlier version goes on" eval 'fit old --max-steps 8 --eval-every 2 --stop-at-step 3 && strip old && "$BUILD/finetune_full" --resume old >out && fit new --max-steps 8 --eval-every 2 && lines new >a.txt && lines old >b.txt && diff a.txt b.txt'
is "... now by epochs: both may change" eval 'fit turn --epochs 3 --batch-size 4 --stop-at-step 3 && strip turn && "$BUILD/finetune_full" --resume turn --eval-every epoch >out && [ "$(evaluated turn | wc -w)" = 3 ]'

# ---- values ----
for v in 1.5 -1 0.0.1 epochs "" 1e-400 inf 99999999999 0x2; do
    refused "--eval-every \"$v\"" 2 "--eval-every: \"$v\" is no interval; expected a whole number of steps, a share of the run below 1 such as 0.25, or epoch" \
        "$BUILD/finetune_full" --model model --dataset "$rows" --eval-every="$v"
done
of_run() { sed -n "s/^[[:space:]]*\"$1\":[[:space:]]*\([^,]*\),*$/\1/p" v/run.json | head -n 1; }
printf '{"eval_every": "epoch", "save_every": 0.5}\n' >c.json
printf 'eval_every: 2\nsave_every: epoch\n' >c.yaml
is "a config of JSON, and run.json" eval 'fit v --max-steps 4 --config c.json && [ "$(of_run eval_every)" = "\"epoch\"" ] && [ "$(of_run save_every)" = 0.5 ]'
is "... of YAML" eval 'fit v --overwrite --max-steps 4 --config c.yaml && [ "$(of_run eval_every)" = 2 ] && [ "$(of_run save_every)" = "\"epoch\"" ]'
is "--describe" eval '"$BUILD/finetune_full" --eval-every epoch --describe | tr -d "\n\t " | grep -q "\"name\":\"eval_every\",\"flag\":\"--eval-every\",\"type\":\"interval\",\"default\":0,\"value\":\"epoch\""'
is "--help" eval '"$BUILD/finetune_full" --help | grep -q -- "--eval-every N|SHARE|epoch"'
printf '{"eval_every": true}\n' >c.json
refused "a value of another type" 2 'eval-every: expected a number or "epoch", found true or false' "$BUILD/finetune_full" --model model --dataset "$rows" --config c.json
finish
