#!/bin/sh
# test_optimizer_flags.sh - each flag of optimizer and schedule reaches the arithmetic: both recipes are run
# with the command lines of tests/reference/steps/runs.txt and compared with PyTorch's float64 numbers. Each
# option of the group "optimizer" must be given, off its default, in one of a recipe's runs. So a new option
# fails here until it has its numbers.
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
for program in finetune_full finetune_lora; do
    is "$program: --describe names the options" \
        eval '[ "$(sort -u "$program.options" | wc -l)" -gt 10 ]'
    none "$program: no option of the group is at its default in all runs (else: add it to make_steps.py)" \
        "$(awk '{ seen[$1]; if ($2 == "changed") off[$1] }
                END { for (o in seen) if (!(o in off)) print o }' "$program.options")"
done
finish
