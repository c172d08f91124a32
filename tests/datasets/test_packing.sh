#!/bin/sh
# test_packing.sh - --packing end to end, in both recipes: a step in packs is that of its rows padded; resumed and killed amid an
# epoch; rows of every length. (The rule and the plan: test_loader.c; families and adapters: test_training.c, test_lora.c.)
. tests/tap.sh
awk '{ sub(/^\{"text": "/, ""); sub(/"\}$/, ""); gsub(/\\./, ""); print "{\"text\": \"" substr($0, 1, 8 + NR * 37 % 90) "\"}" }' \
    datasets/stories.jsonl | head -120 >"$tmp/short.jsonl"
cd "$tmp" || exit 1
tiny model 1 >/dev/null
run() { # NAME OPTION...; recipe: which one
    who=$1
    shift
    "$BUILD/$recipe" --model model --dataset short.jsonl --max-length 120 --threads 2 --lr 3e-3 --seed 3 --output "$who" "$@" \
        >"$who.out" 2>&1
    code=$?
    [ $code = 0 ] || tail -n 5 "$who.out"
    return $code
}
more() { "$BUILD/$recipe" --resume "$@" >>"$1.out" 2>&1 || { tail -n 5 "$1.out"; false; }; }
of() { sed -n "1s/.*\"$2\":\([-0-9.e]*\).*/\1/p" "$1/metrics.jsonl"; } # the first step's
alike() { for k in rows tokens labels; do [ -n "$(of "$1" $k)" ] && [ "$(of "$1" $k)" = "$(of "$2" $k)" ] || return 1; done; }

for recipe in finetune_full finetune_lora; do
    r=${recipe#finetune_}
    whole="--no-save --lr 0 --train-split 0.9 --batch-size 8 --accumulate 16"
    is "$recipe: all rows in one step" run $r.rows $whole
    is "the same in packs" run $r.packs $whole --packing
    is "one step each" test "$(figure $r.rows training_steps) $(figure $r.packs training_steps)" = "1 1"
    is "of the same rows, tokens and labels" alike $r.rows $r.packs
    is "the same loss within 1e-5 ($(of $r.rows loss), $(of $r.packs loss))" near "$(of $r.rows loss)" "$(of $r.packs loss)"
    is "the same norm of the gradient ($(of $r.rows grad_norm), $(of $r.packs grad_norm))" near "$(of $r.rows grad_norm)" "$(of $r.packs grad_norm)"
    is "the same loss of rows held out" near "$(figure $r.rows eval_loss)" "$(figure $r.packs eval_loss)"
    is "padding_share falls ($(figure $r.rows padding_share) %, $(figure $r.packs padding_share) %)" \
        awk "BEGIN { exit !($(figure $r.packs padding_share) < $(figure $r.rows padding_share) / 2) }"
    is "packing_efficiency is the rest" near "$(figure $r.packs packing_efficiency)" "(100 - $(figure $r.packs padding_share))"
    is "... of positions computed" near "$(figure $r.packs packing_efficiency)" "(100 * $(of $r.packs tokens) / $(of $r.packs padded_tokens))"
done

# ---- epochs, the same packs, interrupted ----
epochs() { who=$1; shift; run "$who" --packing --batch-size 1 --accumulate 2 --epochs 2 --eval-every 7 --save-every 5 --train-split 0.9 \
    --lora-r 4 --lora-dropout 0.1 "$@"; }
is "two epochs with adapters" epochs straight
is "every row in each" grep -q '^# rows met  *[0-9]* read by this process, 0 cut' straight.out
is "to the end of the second" grep -q '"epoch":2}' straight/metrics.jsonl
is "the same again" eval 'epochs again && same_run straight again'
is "another seed packs others" eval 'epochs seed --seed 4 && [ "$(of straight tokens)" != "$(of seed tokens)" ]'
steps=$(figure straight training_steps)
for k in 1 5 8 $((steps / 2)) $((steps - 1)); do
    is "stopped at step $k of $steps, and gone on" eval 'epochs s$k --stop-at-step $k && more s$k'
    is "the same bits" same_run straight s$k
done
epochs killed --epochs 400 --eval-every 0 >/dev/null 2>&1 &
await $! [ -e killed/checkpoint-10 ]
kill -9 "$(sed -n 's/.*"pid":[^0-9]*\([0-9]*\).*/\1/p' killed/run.json | head -n 1)"
wait
newest=$(ls -d killed/checkpoint-[0-9]* | grep -v tmp | sed 's/.*-//' | sort -n | tail -n 1)
stop=$((newest + 13))
is "after kill -9 it goes on from checkpoint-$newest" more killed --stop-at-step $stop
is "the same run, not killed" epochs unkilled --epochs 400 --eval-every 0 --stop-at-step $stop
ln -sfn checkpoint-$stop killed/checkpoint-final && ln -sfn checkpoint-$stop unkilled/checkpoint-final
is "the same bits" same_run unkilled killed

# ---- rows of every length ----
first() { head -1 short.jsonl >one.jsonl && run "$@" --dataset one.jsonl --no-save; }
is "a row of its own" first one
n=$(of one tokens)
{ for i in 1 2 3 4 5 6 7; do cat one.jsonl; done; echo '{"text": ""}'; tail -n 5 short.jsonl; echo '{"text": ""}'; } >edges.jsonl
edges() { who=$1; shift; run "$who" --packing --no-save --dataset edges.jsonl --no-shuffle --batch-size 1 --accumulate 7 "$@"; }
is "rows of just the length of a pack ($n tokens)" edges exact --max-length "$n"
is "one to a pack" test "$(of exact padded_tokens)" = $((7 * n))
is "one token less: these are cut" edges less --max-length $((n - 1))
cuts() { sed -n 's/^# rows met .*, \([0-9]*\) cut to the length.*/\1/p' "$1.out"; }
is "none of them before ($(cuts exact), then $(cuts less) cut)" test "$(cuts less)" -ge $(($(cuts exact) + 7))
is "and fill their packs" test "$(of less tokens) $(of less padded_tokens)" = "$((7 * (n - 1))) $((7 * (n - 1)))"
printf '{"text": ""}\n{"text": ""}\n' >none.jsonl
refused "rows without a token" 1 "rows has a token to train on" \
    "$BUILD/finetune_full" --model model --dataset none.jsonl --max-length 120 --packing --output none
refused "packs of one token have nothing to predict" 1 "rows has a token to train on" \
    "$BUILD/finetune_lora" --model model --dataset short.jsonl --max-length 1 --packing --batch-size 2 --output tiny
is "packs of two have" run two --packing --no-save --max-length 2 --max-steps 3
is "a label for each" test "$(of two tokens)" = $((2 * $(of two labels)))
is "more packs than rows" run many --packing --no-save --batch-size 64 --accumulate 4
is "are one step" test "$(figure many training_steps)" = 1
finish
