#!/bin/sh
# test_model_search.sh - searches by the model of three synthetic costs: three seeds each. make bench has 40 (bench_search.sh).
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
search=$BUILD/tests/helpers/model_search
export OPENBLAS_NUM_THREADS=1

# found COST MOST - with the middle of three seeds at most this number of measurements
found() { "$search" "$1" model 0 3 200 >"$tmp/$1" && [ "$(sed 's/-/201/' "$tmp/$1" | sort -n | sed -n 2p)" -le "$2" ]; }
is "fine_tuning: within 1 % of the best after 66 measurements" found fine_tuning 66
is "blocking: after 205" found blocking 205
is "knobs: after 96" found knobs 96
is "the same seed gives the same search" eval 'sed -n 2p "$tmp/knobs" >"$tmp/second" && "$search" knobs model 1 1 200 | cmp - "$tmp/second"'
# covers COST ROWS - the intervals hold 87 to 99 % of fresh points, mean of four seeds (20 seeds: 90 to 98 %)
covers() { "$search" "$1" coverage 0 4 "$2" | awk '{ s += $1 } END { print s / NR; exit !(s / NR > 0.87 && s / NR < 0.99) }'; }
for cost in fine_tuning blocking knobs; do
    is "$cost: intervals of a model of 40 rows" covers $cost 40
    is "... of 100 rows" covers $cost 100
done
is "in any order, points of a Sobol sequence take longer" eval '[ "$("$search" knobs sobol 0 3 200 | grep -c -e -)" = 3 ]'
finish
