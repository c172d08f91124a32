#!/bin/sh
# test_quickstart.sh - what `make quickstart` runs, in a folder of its own; and that it fails where a model has not learnt.
. tests/tap.sh
if sanitized; then
    skip "quickstart" "its two trainings take minutes with sanitizers, and the other tests run what it runs"
    finish
fi
cd "$tmp" || exit 1
ln -s "$here/datasets" datasets
is "quickstart" sh "$here/tools/quickstart.sh"
cp said shown
is "ends below the entropy of single tokens by the margin" grep -q "^validation loss .* margin asked for 1.5" shown
is "shows the run folder" grep -q "The run is in runs/quickstart" shown
is "its checkpoint is a model folder" test -f runs/quickstart/checkpoint-final/model.safetensors
refused "a margin it cannot reach ends it with 1" 1 "did not learn enough" env MARGIN=5 sh "$here/tools/quickstart.sh"
finish
