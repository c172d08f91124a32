#!/bin/sh
# test_overwrite.sh - several programs begun at the same moment with the same --output --overwrite: one gets the folder, the
# others end with exit code 2 and say why, and nothing of the one that runs is lost.
. tests/tap.sh
data=$here/datasets/stories.jsonl
cd "$tmp" || exit 1
tiny model 1 --dtype float32 >/dev/null && head -5 "$data" >rows.jsonl
ROUNDS=${ROUNDS:-3}
begin() { # NUMBER OPTION... - in the background; its exit code goes to code.NUMBER
    n=$1
    shift
    { "$BUILD/finetune_full" --threads 1 --model model --dataset rows.jsonl --max-length 16 --max-steps 1000000 --log-every 1 --output race "$@" >out.$n 2>err.$n & echo $! >pid.$n; wait $!; echo $? >code.$n; } 2>/dev/null &
}
code() { cat code.$1 2>/dev/null; }
trap 'for i in 1 2 3 4; do kill $(cat pid.$i) 2>/dev/null; done; wait; rm -rf "$tmp"' EXIT

# Until all but one have ended, which then trains some steps; then it is stopped, and its checkpoint is looked at.
round() {
    rm -f code.* pid.* out.* err.*
    case $1 in
    finished) rm -rf race && cp -r old race ;; # what is there to be written over
    begun) rm -rf race && mkdir race && : >race/metrics.jsonl ;;
    bare) rm -rf race && mkdir race && cp old/run.json race ;; # nothing there that could be held
    empty) rm -rf race && mkdir race ;;
    *) rm -rf race ;;
    esac
    for i in 1 2 3; do begin $i --overwrite; done
    [ "$1" != nothing ] || begin 4 # one that would not write over anything
    want=2
    [ "$1" != nothing ] || want=3
    await 0 eval '[ "$(ls code.* | wc -l)" -ge $want ]' || { echo "$1: they go on"; return 1; }
    winner=
    for i in 1 2 3 4; do
        [ -e out.$i ] || continue
        case $(code $i) in
        '') [ -z "$winner" ] || { echo "$1: $winner and $i both run"; return 1; }; winner=$i ;;
        2) grep -q -e 'still writing to race' -e 'another run began in race' -e 'race is there already' err.$i || { cat err.$i; return 1; } ;;
        *) echo "$1: $i ended with exit code $(code $i)"; cat err.$i; return 1 ;;
        esac
    done
    [ -n "$winner" ] || { echo "$1: nobody won"; cat err.*; return 1; }
    await "$(cat pid.$winner)" has 2 race/metrics.jsonl || { echo "$1: no step"; cat err.$winner; return 1; }
    kill "$(cat pid.$winner)"
    await 0 [ -e code.$winner ]
    [ "$(code $winner)" = 143 ] || { echo "$1: the winner ended with $(code $winner)"; cat err.$winner; return 1; }
    [ -s race/recipe.c ] && [ -s race/run.json ] && grep -q '"status":[^,]*"stopped"' race/run.json || { echo "$1: race/run.json:"; grep status race/run.json; return 1; }
    step=$(wc -l <race/metrics.jsonl)
    [ -d race/checkpoint-$step ] || { echo "$1: $step steps, and no checkpoint of it: $(ls race)"; return 1; }
    [ -z "$(ls -d ./*.tmp-* 2>/dev/null)" ] || { ls; return 1; }
}
rounds() { for r in $(seq "$ROUNDS"); do round "$1" || { echo "in round $r"; return 1; }; done; }
"$BUILD/finetune_full" --threads 1 --model model --dataset rows.jsonl --max-length 16 --max-steps 1 --output old >/dev/null
for what in nothing finished begun bare empty; do is "three at once, $what there: one runs, the others exit with 2" rounds $what; done
finish
