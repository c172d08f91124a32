#!/bin/sh
# measured_space.sh [FILE] - measure the 300 entities of model_spaces/measured.yaml three times each, by sweep, and write FILE
# (tests/bench/results/measured-space.csv): the dimensions, then the three dataset_tokens_per_second. bench_search.sh searches in it.
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
here=$PWD file=${1:-$here/tests/bench/results/measured-space.csv}
tmp=$(mktemp -d) && cd "$tmp" || exit 1
trap 'rm -rf "$tmp"' EXIT
"$BUILD/make_tales" --rows 300 --seed 1 --output text.jsonl >/dev/null &&
    "$BUILD/init_model" --like tinyllama-1.1b --seed 1 --dtype float32 --max-positions 256 --layers 2 --hidden-size 128 --intermediate-size 256 \
        --heads 4 --kv-heads 2 --vocab-size 512 --tokenizer-text text.jsonl models/tiny >/dev/null || exit 1
space=$here/tests/bench/model_spaces/measured.yaml
names=$(sed -n 's/.*{identifier: \([a-z_]*\), propertyDomain.*/\1/p' "$space" | paste -s -d ,)
# Each time in another order and into another store: so the three results of an entity are minutes apart.
for time in 1 2 3; do
    "$BUILD/sweep" "$space" --store $time --order random --seed $time >log || { tail -n 5 log; exit 1; }
    tail -n 2 log | head -n 1
    "$BUILD/samples" show "$space" --store $time --columns "$names,dataset_tokens_per_second" --output-format csv | tail -n +2 >>all
done
echo "$names,first,second,third" >table
awk -F, '{ value = $NF; sub(/,[^,]*$/, ""); $4 = $4 ? "True" : "False"; all[$0] = all[$0] sprintf(",%.0f", value) }
    END { for (entity in all) print entity all[entity] }' OFS=, all | sort >>table
awk -F, 'NF != 10 { print "measured_space.sh: an entity without three results: " $0; bad = 1 } END { exit bad || NR != 301 }' table || exit 1
cp table "$file"
