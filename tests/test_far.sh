#!/bin/sh
# test_far.sh - the tests of models and of what stands on them, on a device whose memory the host cannot touch and whose queue
# runs late (tests/far).
. tests/tap.sh
export TUNE_TEST_DEVICE=far OMP_WAIT_POLICY=passive CMOCKA_MESSAGE_OUTPUT=TAP
for t in kernels memory model training lora qlora init values checkpoint evaluator peft adapter; do
    is "$t" eval '"$BUILD/tests/test_$t" >"$tmp/out" 2>&1 || { grep -A 4 "^not ok" "$tmp/out"; tail -n 3 "$tmp/out"; false; }'
done
finish
