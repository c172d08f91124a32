#!/bin/sh
# test_meeting.sh - a recipe on ranks that find each other at MASTER_ADDR, as torchrun starts them: the numbers of one rank, a rank that ends,
# and what is refused.
. tests/tap.sh
full=$BUILD/finetune_full
cd "$tmp" || exit 1
unset MASTER_ADDR MASTER_PORT RANK WORLD_SIZE TORCHELASTIC_RUN_ID
head -40 "$here/datasets/stories.jsonl" >rows.jsonl
tiny model 1 --dtype float32 >/dev/null
rows="--model model --dataset rows.jsonl --max-length 40 --batch-size 2 --lr 3e-3 --train-split 0.8 --eval-every 2 --seed 31 --threads 1"
# start RANK SIZE FOLDER OPTION... - a rank in the background; its number of process is in $pid.
start() {
    r=$1 n=$2 who=$3
    shift 3
    env MASTER_ADDR=127.0.0.1 MASTER_PORT=$port WORLD_SIZE=$n RANK=$r "$full" $rows --output "$who" "$@" >"$who.$r.out" 2>&1 &
    pid=$!
}
ended() { wait "$1"; code=$?; [ $code = "$2" ] || { echo "exit code $code"; tail -n 5 "$who".?.out; return 1; }; }
port=$((20000 + $$ % 400 * 20))
again() { start 1 2 "$1" --max-steps 4; one=$pid; start 0 2 "$1" --max-steps 4; ended $pid 0 && ended $one 0; }
is "two ranks that meet at an address" again two
is "... rank 0 alone prints and writes" eval '[ ! -s two.1.out ] && grep -q "^# ranks  *2 processes" two.0.out && grep -q "^# finished  *4 steps" two.0.out'
is "... twice: the same bits" eval 'port=$((port + 9)) && again again && same_run two again README.md'
is "... the figures of one rank with two micro-batches" eval '"$full" $rows --accumulate 2 --max-steps 4 --output alone >alone.out 2>&1 && [ "$(figure two training_steps)" = 4 ] && near "$(figure alone loss_last)" "$(figure two loss_last)" && near "$(figure alone eval_loss)" "$(figure two eval_loss)"'
if mpi_here; then
    is "... the bits of two ranks by MPI" eval '"$full" $rows --ranks 2 --max-steps 4 --output mpi >mpi.out 2>&1 && same_run two mpi README.md || { cat mpi.out; false; }'
else
    skip "... the bits of two ranks by MPI" "no MPI"
fi

# ---- the end ----
begin() { # FOLDER: three ranks, up to their first checkpoint
    port=$((port + 9))
    for rank in 2 1 0; do start $rank 3 "$1" --max-steps 10000000 --save-every 20 --keep-last 1 --timeout 200; eval "p$rank=$pid"; done
    await $pid test -e "$1/checkpoint-best"
}
others() { ! { wait "$1"; } && ! { wait "$2"; }; }
is "rank 1 of 3 is killed: the others end, and rank 0 says so" eval 'begin killed && kill -KILL $p1 && others $p0 $p2 && grep -q "^finetune_full: rank 1 of 3 (process $p1 on .*) has ended; rank 0 waited" killed.0.out && [ ! -s killed.2.out ] || { cat killed.?.out; false; }'
is "... run.json says it, too" eval 'grep -q "\"reason\":.*rank 1 of 3" killed/run.json && grep -q "\"operation\":" killed/run.json'
is "rank 0 of 3 is killed: one of the others says so, with its host" eval 'begin first && kill -KILL $p0 && others $p1 $p2 && [ "$(cat first.1.out first.2.out | grep -c "^finetune_full: rank [12] of 3 on .*: rank 0 of 3 (process $p0 on $(hostname)) has ended")" = 1 ] || { cat first.?.out; false; }'
is "SIGTERM to rank 1: all stop at the same step, with a checkpoint" eval 'begin term && kill -TERM $p1 && ended $p0 143 && ended $p1 143 && ended $p2 143 && grep -q "^# stopped  *SIGTERM at step" term.0.out'

# ---- what is refused ----
refused "no MASTER_ADDR" 2 "set MASTER_ADDR and MASTER_PORT to the host of rank 0" env WORLD_SIZE=2 RANK=0 "$full" $rows --output none
refused "... of srun without PMIx" 2 "srun started 2 processes that cannot find each other; give srun --mpi=pmix" env SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 "$full" $rows --output none
refused "a port that is none" 2 "MASTER_PORT=ssh: expected a number" env MASTER_ADDR=127.0.0.1 MASTER_PORT=ssh WORLD_SIZE=2 RANK=0 "$full" $rows --output none
refused "nobody comes" 1 "rank 1 of 2 did not come within 1 s to rank 0 (MASTER_ADDR 127.0.0.1" env MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port + 9)) WORLD_SIZE=2 RANK=0 "$full" $rows --timeout 1 --output none
refused "nobody is there" 1 "rank 0 did not answer within 1 s at 127.0.0.1" env MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port + 9)) WORLD_SIZE=2 RANK=1 "$full" $rows --timeout 1 --output none
is "nothing was made" test ! -e none
is "--ranks 1 trains alone" eval 'WORLD_SIZE=2 RANK=1 "$full" $rows --ranks 1 --max-steps 1 --output single >single.out 2>&1 && grep -q "^# finished  *1 steps" single.out'
torchrun=$(command -v torchrun || ls "$HOME/.cache/tune.c/venv/bin/torchrun" 2>/dev/null)
if [ -n "$torchrun" ] && "$torchrun" --help >/dev/null 2>&1; then
    is "torchrun starts them" eval '"$torchrun" --standalone --nproc-per-node 2 --no-python "$full" $rows --max-steps 4 --output torch >torch.out 2>&1 && same_run two torch README.md || { tail -n 5 torch.out; false; }'
else
    skip "torchrun starts them" "no torchrun"
fi
finish
