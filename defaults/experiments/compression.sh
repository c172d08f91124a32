#!/bin/sh
# compression.sh - an example: any program with flags, or variables, and a JSON report can be measured. How fast gzip packs.
set -e
cd "$TUNE_OUTPUT"
yes "$TUNE_INPUT_TEXT" | head -c "$((TUNE_INPUT_MEGABYTES * 1000000))" >plain
begin=$(date +%s%N)
gzip -"$TUNE_INPUT_LEVEL" -c plain >packed
end=$(date +%s%N)
plain=$(wc -c <plain) packed=$(wc -c <packed)
rm plain packed
awk -v ns=$((end - begin)) -v plain="$plain" -v packed="$packed" -v nonce="$TUNE_NONCE" 'BEGIN {
    printf "{\"megabytes_per_second\": %.6g, \"ratio\": %.6g, \"nonce\": \"%s\"}\n", plain / ns * 1000, plain / packed, nonce
}' >report.json
