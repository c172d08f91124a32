#!/bin/sh
# test_optimizer_flags.sh - each flag of optimizer and schedule reaches the arithmetic: both recipes are run
# with the command lines of tests/reference/steps/runs.txt and compared with PyTorch's float64 numbers. Each
# option of the group "optimizer" must be given, off its default, in one of a recipe's runs. So a new option
# fails here until it has its numbers. Options that only change the learning rate may have a formula instead.
. tests/tap.sh
cd "$tmp" || exit 1
cp -r "$here"/tests/reference/steps/. . || exit 1
# Observed: at most 1.1e-5. Float32 rounds a weight to 6e-8 of itself; an update is about 1 % of it.
limit=1e-4

changed() { # PROGRAM OPTION... - the group's options: name, and whether it is given and off its default
    "$BUILD/$@" --describe | awk '
        $1 == "\"name\":" { name = $2; default_ = value = given = "" }
        $1 == "\"default\":" { default_ = $2 }
        $1 == "\"value\":" { value = $2 }
        $1 == "\"source\":" { given = $2 != "\"default\"," }
        $1 == "\"group\":" && $2 == "\"optimizer\"," {
            gsub(/[",]/, "", name)
            print name, given && value != default_ ? "changed" : "default"
        }'
}
before() { case $1 in full-*) echo model/model.safetensors ;; *) echo adapter/adapter_model.safetensors ;; esac; }
as_pytorch() { # NAME PROGRAM OPTION...
    run=$1
    shift
    "$BUILD/$@" --output out-$run --threads 2 >$run.out 2>&1 || { cat $run.out; return 1; }
    "$BUILD/tests/helpers/trained" $run.safetensors "$(before $run)" out-$run $limit
}

while read -r name program options; do
    # shellcheck disable=SC2086 # one word each
    is "$name: losses, rates, norms and weights are PyTorch's" as_pytorch "$name" "$program" $options
    # shellcheck disable=SC2086
    changed "$program" $options >>"$program.options"
done <runs.txt
# ---- the learning rate's course: transformers' formulas, with our warm-up ----
rates() { sed -n 's/.*"lr":\([^,}]*\).*/\1/p' "$1/metrics.jsonl"; }
# wanted KIND - of 20 steps 3 warm up, the floor is 0.2, and wsd decays in 0.35 of the steps: 7 of them.
wanted() {
    awk -v kind="$1" 'BEGIN {
        pi = atan2(0, -1); lr = 0.03; m = 0.2
        for (s = 0; s < 20; s++) {
            q = kind == "wsd" ? (s < 13 ? 0 : (s - 13) / 7) : (s - 3) / 17
            f = kind == "linear" ? 1 - q : (1 + cos(pi * q)) / 2
            printf "%.15g\n", s < 3 ? lr * (s + 1) / 3 : lr * (f * (1 - m) + m)
        }
    }'
}
close_to() { paste "$1" "$2" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-15 || NF != 2) bad = 1; n++ } END { exit bad || n != 20 }'; }
for program in finetune_full finetune_lora; do
    for kind in linear cosine wsd; do
        decay=
        [ $kind != wsd ] || decay="--decay-ratio 0.35"
        options="--model model --dataset rows.jsonl --max-length 48 --max-steps 20 --lr 0.03 --schedule $kind --warmup-steps 3 --min-lr-ratio 0.2 $decay"
        # shellcheck disable=SC2086
        is "$program: $kind with a floor" eval '"$BUILD/$program" $options --output rate-$program-$kind >rate.out && rates rate-$program-$kind >got && wanted $kind >want && close_to got want || { paste got want; false; }'
        # shellcheck disable=SC2086
        changed "$program" $options >>"$program.options"
    done
done
refused "a floor of a constant rate" 2 "--min-lr-ratio is where the learning rate ends, and --schedule constant has no end" "$BUILD/finetune_full" --model model --dataset rows.jsonl --max-length 48 --schedule constant --min-lr-ratio 0.1
refused "a decay of another schedule" 2 "--decay-ratio is the last part of --schedule wsd" "$BUILD/finetune_full" --model model --dataset rows.jsonl --max-length 48 --decay-ratio 0.3

for program in finetune_full finetune_lora; do
    is "$program: --describe names the options" \
        eval '[ "$(sort -u "$program.options" | wc -l)" -gt 10 ]'
    none "$program: no option of the group is at its default in all runs (else: add it to make_steps.py)" \
        "$(awk '{ seen[$1]; if ($2 == "changed") off[$1] }
                END { for (o in seen) if (!(o in off)) print o }' "$program.options")"
done
finish
