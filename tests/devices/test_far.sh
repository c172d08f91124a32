#!/bin/sh
# test_far.sh - every test of models, and of what stands on them, on a device whose memory the host
# cannot touch and whose queue runs late (tests/far): each test program that asks for test_device.
. tests/tap.sh
export TUNE_TEST_DEVICE=far OMP_WAIT_POLICY=passive CMOCKA_MESSAGE_OUTPUT=TAP
programs=$(grep -lE 'test_device\(|"adapter_folders\.h"' tests/*/test_*.c | sed 's|tests/\(.*\)\.c|\1|')
passes() {
    "$BUILD/tests/$1" >"$tmp/out" 2>&1 && return
    grep -A 4 "^not ok" "$tmp/out"
    tail -n 3 "$tmp/out"
    return 1
}
# With sanitizers these take minutes: three that use all operations and a whole training are enough.
if sanitized; then programs="devices/test_kernels models/test_training models/test_model"; fi
is "there are some" eval 'echo $programs | grep -q "devices/test_kernels .*models/test_training"'
for t in $programs; do
    is "${t#*/test_}" passes "$t"
done
finish
