#!/bin/sh
# mock.sh - measures nothing: a score drawn by its inputs, after some time, sometimes a failure. To try spaces, stores and sweeps.
sleep "$TUNE_INPUT_SECONDS" || exit 1
hash=$(printf '%s ' "$TUNE_INPUT_X" "$TUNE_INPUT_Y" "$TUNE_INPUT_Z" "$TUNE_INPUT_SEED" | cksum | cut -d' ' -f1)
if [ $((hash % 100)) -lt "$TUNE_INPUT_FAILURE_PERCENT" ]; then
    echo "Simulated failure" >&2
    exit 1
fi
printf '{"score": %d, "nonce": "%s"}\n' $((hash / 100 % 1001)) "$TUNE_NONCE" >"$TUNE_OUTPUT/report.json"
