#!/bin/sh
# training.sh - a stand-in for a training program: speed and memory by formulas, in milliseconds. It
# trains nothing. The file STORE.count counts its runs. The count gives up to 0.6 % of noise.
count=${TUNE_OUTPUT%/runs/*}.count
echo >>"$count"
exec awk -v model="$TUNE_INPUT_MODEL_NAME" -v length_="$TUNE_INPUT_MODEL_MAX_LENGTH" -v batch="$TUNE_INPUT_BATCH_SIZE" \
    -v dtype="$TUNE_INPUT_TORCH_DTYPE" -v n="$(wc -l <"$count")" 'BEGIN {
    weights = model == "small" ? 0.2e9 : model == "medium" ? 0.5e9 : 1.5e9
    bytes = dtype == "bfloat16" ? 2 : 4
    memory = weights * (bytes + 6) + batch * length_ * sqrt(weights) * bytes * 5
    if (memory > 16e9) {
        printf "not enough memory: %.0f MB needed, 16000 MB there\n", memory / 1e6 >"/dev/stderr"
        exit 3
    }
    if (model == "medium" && length_ == 2048 && bytes == 2) {
        print "the loss is not a number" >"/dev/stderr"
        exit 1
    }
    n = (n * 7919 + 17) % 10007
    noise = n * n % 10007 / 10007 - 0.5
    speed = 8e12 / weights * (bytes == 2 ? 1.7 : 1) * batch / (batch + 1.5) / (1 + length_ / 8192) * (1 + 0.012 * noise)
    printf "{\"dataset_tokens_per_second\": %.1f, \"peak_anonymous_bytes\": %.0f, \"nonce\": \"%s\"}\n", speed, memory,
        ENVIRON["TUNE_NONCE"] >(ENVIRON["TUNE_OUTPUT"] "/report.json")
}'
