#!/bin/sh
# compare.sh OLD NEW [ROUNDS] - is a change slower or larger? Two build folders, say of two commits: a full step, a LoRA step, a
# packed step and one in bfloat16 (smollm2-135m's shape, length 512). The two take turns; each one's best step counts. Prints
# old, new, new / old in time and in peak anonymous memory.
[ -x "$1/finetune_full" ] && [ -x "$2/finetune_full" ] || { sed -n '2,4s/^# //p' "$0"; exit 2; }
old=$1 new=$2 rounds=${3:-5}
cd "$(dirname "$0")/../.." || exit 1
case $old in /*) ;; *) old=$OLDPWD/$old ;; esac
case $new in /*) ;; *) new=$OLDPWD/$new ;; esac
. tests/bench/full_steps.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$new/init_model" --like smollm2-135m --seed 1 "$tmp/model" >/dev/null || exit 1
full_rows "$tmp/rows.jsonl"
# one CASE BUILD WHO PROGRAM OPTION... - its best step and its memory, a line in $tmp/CASE
one() {
    name=$1 build=$2 who=$3 program=$4
    shift 4
    "$build/$program" --model "$tmp/model" --max-length 512 --max-steps 4 --no-save --output "$tmp/run" --overwrite "$@" >"$tmp/out" 2>&1 ||
        { cat "$tmp/out"; exit 1; }
    best=$(tail -n +2 "$tmp/run/metrics.jsonl" | sed 's/.*"step_s":\([0-9.e-]*\).*/\1/' | sort -g | head -n 1)
    memory=$(sed -n 's/.*"peak_anonymous_bytes":[^0-9]*\([0-9]*\).*/\1/p' "$tmp/run/report.json")
    echo "$who $best $memory" >>"$tmp/$name"
}
for round in $(seq "$rounds"); do
    echo "# round $round of $rounds" >&2
    for case in full lora packed bfloat16; do
        order="old new"
        [ $((round % 2)) = 1 ] || order="new old"
        for who in $order; do
            eval "build=\$$who"
            case $case in
            full) one full "$build" $who finetune_full --dataset "$tmp/rows.jsonl" ;;
            lora) one lora "$build" $who finetune_lora --dataset "$tmp/rows.jsonl" --base-dtype bfloat16 ;;
            packed) one packed "$build" $who finetune_full --dataset datasets/stories.jsonl --packing ;;
            bfloat16) one bfloat16 "$build" $who finetune_full --dataset "$tmp/rows.jsonl" --dtype bfloat16 ;;
            esac
        done
    done
done
for case in full lora packed bfloat16; do
    awk -v name=$case '
        !($1 in best) || $2 < best[$1] { best[$1] = $2 }
        $3 > most[$1] { most[$1] = $3 }
        END {
            printf "%-10s step %.3f s -> %.3f s (%.3f)   memory %.1f -> %.1f MB (%.4f)\n", name, best["old"], best["new"],
                best["new"] / best["old"], most["old"] / 1e6, most["new"] / 1e6, most["new"] / most["old"]
        }' "$tmp/$case"
done
