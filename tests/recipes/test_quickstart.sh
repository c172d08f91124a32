#!/bin/sh
# test_quickstart.sh - what `make quickstart` runs, in a folder of its own: a run that is interrupted, goes on and is drawn; and
# that it fails where a model has not learnt.
. tests/tap.sh
if sanitized; then
    skip "quickstart" "its two trainings take minutes with sanitizers, and the other tests run what it runs"
    finish
fi
cd "$tmp" || exit 1
ln -s "$here/datasets" datasets && ln -s "$here/defaults" defaults
is "quickstart" sh "$here/tools/quickstart.sh"
cp said shown
is "is stopped at step 50 of 90" grep -qE '^quickstart +finetune_full +stopped +50/90 ' shown
is "goes on behind it" grep -qE '^# resumed +behind step 50$' shown
is "every step is there once" eval 'sed -n "s/.*\"step\":\([0-9]*\),\"loss\".*/\1/p" runs/quickstart/metrics.jsonl >steps && seq 90 | cmp - steps'
is "is plotted" eval 'grep -q "loss and eval_loss, nats/token" shown && grep -q "</svg>" runs/quickstart/loss.svg'
is "ends below the entropy of single tokens by the margin" grep -q "^validation loss .* margin asked for 1.5" shown
is "shows the run folder" grep -q "The run is in runs/quickstart" shown
is "its words, before and after, side by side" eval 'grep -qE "^models/quickstart +[|] runs/quickstart/checkpoint-final$" shown && grep -qE "^[^|]+ [|] [^|]+$" shown'
is "four configurations are measured" grep -qE "^# finished +4 valid, 0 invalid, 0 failed, 0 known" shown
is "and known the second time" grep -qE "^# finished +0 valid, 0 invalid, 0 failed, 4 known" shown
is "and the fastest is shown" eval 'grep -qE "^ *1 +[0-9.]+ .* (64|128) +[14]$" shown && grep -qE "^ *4 +[0-9.]+ .* (64|128) +[14]$" shown'
is "its checkpoint is a model folder" test -f runs/quickstart/checkpoint-final/model.safetensors
# The same run once more, without training it again.
mkdir fake && ln -s "$BUILD"/* fake && ln -sf /bin/true fake/finetune_full
refused "a margin it cannot reach ends it with 1" 1 "did not learn enough" env MARGIN=5 BUILD=fake sh "$here/tools/quickstart.sh"
finish
