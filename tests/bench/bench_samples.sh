#!/bin/sh
# bench_samples.sh [ROWS...] - what samples asks of stores of that many rows (100000 and 1000000 if not given: 0.4 and 4 GB in $TMPDIR)
# as finetune_full_benchmark writes them (17 keys, 35 inputs, 30 targets): time and highest memory of each command, files warm.
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$(pwd)/$BUILD ;; esac
timed=$BUILD/tests/helpers/timed samples=$BUILD/samples fill=$BUILD/tests/helpers/fill
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
space() { # LENGTHS - of 100 batch sizes each
    cat <<E2
entitySpace:
  - {identifier: model_name, propertyDomain: {values: [smollm2-135m]}}
  - {identifier: number_gpus, propertyDomain: {values: [0]}}
  - {identifier: model_max_length, propertyDomain: {domainRange: [1, $(($1 + 1))], interval: 1}}
  - {identifier: batch_size, propertyDomain: {domainRange: [1, 101], interval: 1}}
experiments:
  - actuatorIdentifier: SFTTrainer
    experimentIdentifier: finetune_full_benchmark-v1.0.0
    parameterization:
      - {property: {identifier: fms_hf_tuning_version}, value: "2.8.2"}
      - {property: {identifier: stop_after_seconds}, value: 30}
      - {property: {identifier: flash_attn}, value: False}
E2
}
for rows in ${*:-100000 1000000}; do
    space $((rows / 100)) >s.yaml
    "$fill" st s.yaml "$rows" || exit 1
    echo "# $rows rows, $(du -sm st | cut -f1) MB in $(ls st/*.h5 | wc -l) files"
    "$timed" "show, target, csv" csv "$samples" show s.yaml --store st --include matching --output-format csv || exit 1
    [ "$(wc -l <csv)" = $((rows + 1)) ] || exit 1
    "$timed" "the same of measured ones" out "$samples" show s.yaml --store st --output-format csv
    "$timed" "show, observed, json" out "$samples" show s.yaml --store st --include matching --output-format json
    "$timed" "show --where, 1 in 100, two properties" out "$samples" show s.yaml --store st --include matching --where 'batch_size == 8' --property train_runtime,is_valid --output-format csv
    "$timed" "missing" out "$samples" missing s.yaml --store st --output-format csv
    "$timed" "best" out "$samples" best s.yaml --store st --maximize dataset_tokens_per_second --where 'batch_size <= 2'
    "$timed" "plot, a heat map" out "$samples" plot s.yaml --store st --property dataset_tokens_per_second --svg plot.svg
    "$timed" "stats" out "$samples" status --store st
    "$timed" "stats SPACE" out "$samples" status s.yaml --store st
    "$timed" "trace" out "$samples" show filled --store st --output-format csv
    "$timed" "entity" out "$samples" show model_name.smollm2-135m-number_gpus.0-model_max_length.7-batch_size.9 --store st
    "$timed" "rows csv" rows.csv "$samples" show finetune_full_benchmark-v1.0.0 --store st --output-format csv
    "$timed" "check" out "$samples" check --store st
    "$timed" "one append: the whole of a program that does it" out "$fill" st s.yaml 1 1 again && cat out
    "$timed" "import of what show wrote" out "$samples" import csv csv --experiment finetune_full_benchmark-v1.0.0 --store imported
    rm -rf st imported csv rows.csv
done
