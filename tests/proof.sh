#!/bin/sh
# proof.sh [--small] [--base] [FOLDER] - whether the recipes teach: make proof.
# finetune_full alone trains a model from random weights on stories of make_tales. Then full, LoRA, QLoRA and DPO start from it
# and learn the tasks of make_tasks. All of them, and the base, answer questions that no training row has. An answer is right
# if it is the expected text, whole. Prints a table; ends with 1 unless each tuned model is MARGIN above the base and their
# 95 % intervals (Wilson) lie apart.
# DPO starts from the same base as the others. Its loss is orpo: the cross entropy of the chosen answer, and the odds.
# FOLDER takes corpus, weights and answers (1 GB at most; default: $TMPDIR/tune-proof). What is complete there is not made
# again, so a proof that was stopped goes on. The seconds of each part lie beside it.
#   --small   a model of 0.6 M weights and 0.2 M tokens, in half a minute: tries the path. The full model must be 0.01 above.
#   --base    ends when the base is trained; run again without it, the proof goes on from there
BUILD=${BUILD:-build}
small= only_base=
while :; do
    case $1 in
    --small) small=yes ;;
    --base) only_base=yes ;;
    *) break ;;
    esac
    shift
done
place=${1:-${TMPDIR:-/tmp}/tune-proof${small:+-small}}
if [ -n "$small" ]; then
    tales=1000 least_tokens=150000 rows=1500 tests=200 MARGIN=${MARGIN:-0.01} apart=
    shape="--layers 2 --hidden-size 128 --intermediate-size 256 --heads 4 --kv-heads 2 --vocab-size 1024"
    base="--batch-size 4 --max-length 256 --lr 5e-3" batch=4 epochs=2 full_lr=3e-3
    lora="--epochs 2 --lora-r 16 --lr 1e-2"
    least_weights=300000 most_weights=1000000
    judged="full"
else
    tales=88500 least_tokens=15000000 rows=16000 tests=600 MARGIN=${MARGIN:-0.3} apart=yes
    shape="--layers 3 --hidden-size 320 --intermediate-size 336 --heads 5 --kv-heads 1 --vocab-size 2048"
    base="--batch-size 1 --accumulate 4 --max-length 1024 --lr 3e-3" batch=8 epochs=2 full_lr=1e-3
    lora="--epochs 3 --lora-r 64 --lora-alpha 64 --lr 1e-3"
    least_weights=3000000 most_weights=5000000
    judged="full lora qlora dpo"
fi
mkdir -p "$place" || exit 1
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"

fail() {
    echo "proof: $*" >&2
    exit 1
}
# part NAME COMMAND... - runs it, its output in NAME.log, unless it is done; adds wall and CPU seconds to NAME.seconds.
part() {
    name=$1
    shift
    [ ! -e "$place/$name.done" ] || return 0
    echo "# $name: $*"
    begin=$(date +%s)
    times >"$place/times" # in this shell: a $(...) would count its own children
    "$@" >>"$place/$name.log" 2>&1
    code=$?
    times >>"$place/times"
    echo "$(($(date +%s) - begin)) $(cpu)" >>"$place/$name.seconds"
    [ $code = 0 ] || { tail -n 20 "$place/$name.log" >&2; fail "$name ended with $code"; }
    : >"$place/$name.done"
}
# The CPU seconds that children took between two `times`, each of which prints "0m1.5s 0m0.1s" for the shell, then for them.
cpu() {
    awk '{ gsub(/s/, ""); split($1, u, "m"); split($2, s, "m"); sum[NR] = 60 * (u[1] + s[1]) + u[2] + s[2] }
        END { printf "%.2f", sum[4] - sum[2] }' "$place/times"
}
# train NAME PROGRAM OPTION... - a run in the folder NAME, or the rest of it.
train() {
    run=$1 program=$BUILD/$2
    shift 2
    if [ -d "$place/$run/checkpoint-final" ] || ls -d "$place/$run"/checkpoint-[0-9]* >/dev/null 2>&1; then
        part "$run" "$program" --resume "$place/$run"
    else
        part "$run" "$program" --seed 1 --overwrite --log-every 50 "$@" --output "$place/$run"
    fi
}
# tune NAME PROGRAM OPTION... - the base learns tasks.
tune() {
    run=$1 program=$2
    shift 2
    train "$run" "$program" --model "$place/base/checkpoint-final" --chat-template plain \
        --max-length 96 "$@"
}
# answer NAME OPTION... - answers to the test's questions.
answer() {
    run=$1
    shift
    part "$run-answers" "$BUILD/generate" "$@" --chat-template plain --input "$place/test.jsonl" --output "$place/$run.jsonl" \
        --batch-size 32 --max-new-tokens 16
}
# score NAME - "right all low high": exact matches of its answers, and the ends of Wilson's interval.
score() {
    awk -v z=1.959964 '
        FNR == NR { sub(/.*"assistant", "content": "/, ""); sub(/"\}\]\}$/, ""); right[FNR - 1] = $0; next }
        {
            row = $0; sub(/^\{"row": */, "", row); sub(/,.*/, "", row)
            if (row in answered || !(row in right)) { print "row " row " is answered twice or not asked" >"/dev/stderr"; exit 1 }
            answered[row] = 1
            sub(/.*"answer": *"/, ""); sub(/", *"(expected|end)":.*/, ""); sub(/^ +/, ""); sub(/ +$/, "")
            n++; k += $0 == right[row]
        }
        END {
            if (!n) exit 1
            p = k / n; d = 1 + z * z / n
            middle = (p + z * z / (2 * n)) / d; half = z / d * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
            printf "%d %d %.4f %.4f\n", k, n, k ? middle - half : 0, middle + half
        }' "$place/test.jsonl" "$place/$1.jsonl"
}
trained() { sed -n 's/^# model .* \([0-9.]*[KMG]*\) trained.*/\1/p' "$place/$1.log" | head -n 1; }
minutes() { awk '{ w += $1; c += $2 } END { printf "%.1f | %.1f", w / 60, c / 120 }' "$place/$1.seconds"; }

# ---- the base ----
part tales "$BUILD/make_tales" --rows $tales --seed 1 --output "$place/tales.jsonl"
head -n 5000 "$place/tales.jsonl" >"$place/tokenizer.jsonl"
[ -d "$place/random" ] || "$BUILD/init_model" --like tinyllama-1.1b --seed 1 --dtype float32 --max-positions 1024 $shape \
    --tokenizer-text "$place/tokenizer.jsonl" "$place/random" || exit 1
train base finetune_full --model "$place/random" --dataset "$place/tales.jsonl" --packing --beta2 0.99 --save-every 400 \
    --keep-last 2 $base
# Tokens of all tales with their ends; the run made one epoch of them. Weights: of the file, four bytes each.
tokens=$("$BUILD/tokenize" --model "$place/random" <"$place/tales.jsonl" | tr -cd ',\n' | wc -c)
tokens=$((tokens + tales))
weights=$(($(wc -c <"$place/base/checkpoint-final/model.safetensors") / 4))
[ $tokens -ge $least_tokens ] || fail "$tokens tokens; expected $least_tokens"
[ $weights -ge $least_weights ] && [ $weights -le $most_weights ] || fail "$weights weights"
[ -z "$only_base" ] || exit 0

# ---- tasks ----
part train-rows "$BUILD/make_tasks" --rows $rows --seed 1 --output "$place/train.jsonl"
part pair-rows "$BUILD/make_tasks" --rows $rows --seed 1 --pairs --output "$place/pairs.jsonl"
part test-rows "$BUILD/make_tasks" --rows $tests --seed 2 --part test --output "$place/test.jsonl"
questions() { sed 's/.*"role": "user", "content": "//; s/"}.*//' "$@"; }
questions "$place/train.jsonl" "$place/pairs.jsonl" | sort -u >"$place/asked"
[ -z "$(questions "$place/test.jsonl" | sort | comm -12 - "$place/asked")" ] || fail "a test question is in the training rows"

# A pack takes three rows or so; pairs are not packed.
tune full finetune_full --dataset "$place/train.jsonl" --packing --batch-size $batch --epochs $epochs --lr $full_lr
tune lora finetune_lora --dataset "$place/train.jsonl" --packing --batch-size $batch $lora
tune qlora finetune_lora --dataset "$place/train.jsonl" --packing --batch-size $batch $lora --base-dtype nf4
tune dpo finetune_dpo --dataset "$place/pairs.jsonl" --loss orpo --batch-size $((3 * batch)) $lora
answer base --model "$place/base/checkpoint-final"
answer full --model "$place/full/checkpoint-final"
answer lora --model "$place/base/checkpoint-final" --adapter "$place/lora/checkpoint-final"
answer qlora --model "$place/base/checkpoint-final" --adapter "$place/qlora/checkpoint-final" --base-dtype nf4
answer dpo --model "$place/base/checkpoint-final" --adapter "$place/dpo/checkpoint-final"

# ---- the table ----
echo
echo "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null | head -n 1), $(nproc) cores; base: $weights weights," \
    "$tokens tokens; $tests questions"
echo "| model | trained weights | rows | minutes | CPU minutes / 2 | exact match | 95 % interval | above base |"
echo "|---|---|---|---|---|---|---|---|"
missed=
for name in base full lora qlora dpo; do
    set -- $(score $name)
    [ "$2" = $tests ] || fail "$name answered ${2:-0} of $tests questions"
    [ $name != base ] || { base_right=$1 base_high=$4; }
    learnt=$rows
    [ $name != base ] || learnt=$tales
    echo "$1 $2 $3 $4" | awk -v name=$name -v trained="$(trained $name)" -v rows=$learnt -v minutes="$(minutes $name)" -v b=$base_right '
        { above = name == "base" ? "" : sprintf("%.3f", ($1 - b) / $2)
          printf "| %s | %s | %s | %s | %.3f | %.3f to %.3f | %s |\n", name, trained, rows, minutes, $1 / $2, $3, $4, above }'
    case " $judged " in
    *" $name "*) awk "BEGIN { exit !(($1 - $base_right) / $2 >= $MARGIN && (\"$apart\" == \"\" || $3 > $base_high)) }" || missed="$missed $name" ;;
    esac
done
[ -z "$missed" ] || fail "not $MARGIN above the base${apart:+, or intervals that meet}:$missed"
echo "proof: each of $judged is at least $MARGIN above the base${apart:+, and the intervals lie apart}"
