#!/bin/sh
# bench_generate.sh [ROUNDS] - generation on smollm2-135m's shape, beside the memory's bandwidth and the products' own rate in the
# same run, and the time from a warm start to the first token. Asked: one row at least 0.70 of the bandwidth; bfloat16 1.7 of
# float32; eight rows 4 of one; a prompt 0.8 of its products; the first token within 1 s.
BUILD=${BUILD:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$BUILD/init_model" --like smollm2-135m --seed 1 "$tmp/model" >/dev/null || exit 1
"$BUILD/tests/helpers/generate_rates" "$tmp/model" "${1:-5}" || exit 1
for round in 1 2 3 4; do # the first one warms the page cache
    "$BUILD/tests/helpers/timed" "start to the first token, round $round" "$tmp/out" "$BUILD/generate" --model "$tmp/model" \
        --prompt "Write a haiku about rain" --max-new-tokens 1 2>"$tmp/notes" || exit 1
done
