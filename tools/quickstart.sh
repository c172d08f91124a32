#!/bin/sh
# quickstart.sh - a small SmolLM2-shaped model, a sample set, a short training that is interrupted and goes on, its curves, the
# proof that it learnt, and a space of four configurations measured. Offline.
# Fails unless the loss on held-out stories ends MARGIN nats below the entropy of single tokens, which is the best a model
# that ignores all context can do.
set -e
BUILD=${BUILD:-build}
MARGIN=${MARGIN:-1.5}
model=models/quickstart data=datasets/stories.jsonl run=runs/quickstart
show() {
    echo
    echo "\$ $*"
    "$@"
}

if [ ! -d $model ]; then
    $BUILD/init_model --like smollm2-135m --seed 1 --dtype float32 --layers 6 --hidden-size 192 --intermediate-size 512 \
        --heads 3 --kv-heads 1 --vocab-size 2048 --max-positions 512 $model
fi
# Stopped at step 50 of 90, in the middle of an epoch, as Ctrl-C would stop it: the step is finished, a checkpoint saved.
show $BUILD/finetune_full --model $model --dataset $data --train-split 0.9 --max-length 256 --batch-size 8 \
    --lr 3e-3 --epochs 2 --eval-every 20 --log-every 10 --seed 1 --output $run --overwrite --stop-at-step 50
show $BUILD/runs list $run
# The same steps, to the bit, that it would have made without the interruption.
show $BUILD/finetune_full --resume $run
show $BUILD/runs plot $run --svg $run/loss.svg

# Entropy of the set's single tokens, nats: what the validation loss has to beat.
entropy=$($BUILD/tokenize --model $model <$data | tr -c '0-9\n' ' ' | awk '
    { for (i = 1; i <= NF; i++) { n[$i]++; all++ } }
    END { for (t in n) h -= n[t] / all * log(n[t] / all); printf "%.4f", h }')
loss=$(sed -n 's/.*"eval_loss":[[:space:]]*\([0-9.]*\).*/\1/p' $run/report.json)
echo
echo "validation loss $loss nats/token; entropy of single tokens $entropy; margin asked for $MARGIN"
if ! awk "BEGIN { exit !($loss <= $entropy - $MARGIN) }"; then
    echo "quickstart: the model did not learn enough: $loss is not $MARGIN below $entropy" >&2
    exit 1
fi
# Its words, before and after.
show $BUILD/generate --model $run/checkpoint-final --compare-model $model --prompt "Once upon a time" --max-new-tokens 40
# Which of four configurations of that model is fastest here? A second each; the second time nothing is left to measure.
space=defaults/spaces/quickstart.yaml
show $BUILD/sweep $space --store runs/samples
show $BUILD/sweep $space --store runs/samples
show $BUILD/samples best $space --store runs/samples --maximize dataset_tokens_per_second
cat <<END

The run is in $run, what was measured in runs/samples:
  run.json        every setting, the machine, the data, the command that repeats it
  metrics.jsonl   loss, gradient norm, learning rate and time of each step
  report.json     the measured properties
  recipe.c        the program that ran
  checkpoint-final/   the trained model as a Hugging Face folder
  loss.svg        its curves: open it in a browser

Next:
  $BUILD/studio                                                see runs and measurements in a browser, start others
  $BUILD/finetune_full --help
  $BUILD/finetune_full --model $model --dataset $data --show-tokens 1      what the model sees
  $BUILD/runs show $run                                        everything about the run
  $BUILD/generate --model $run/checkpoint-final --prompt "One day"              what the model says
  tools/download.sh HuggingFaceTB/SmolLM2-135M models/SmolLM2-135M              a real model, or, offline, its exact shape:
  $BUILD/init_model --like smollm2-135m --seed 1 models/SmolLM2-135M
  $BUILD/finetune_full --model models/SmolLM2-135M --dataset my.jsonl --output runs/first
  cp recipes/finetune_full.c recipes/mine.c && make $BUILD/mine                 a recipe of your own
  $BUILD/sweep defaults/spaces/laptop.yaml --store samples            its lengths and batch sizes, measured for 30 s each
END
