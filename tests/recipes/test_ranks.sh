#!/bin/sh
# test_ranks.sh - recipes on several ranks by mpirun: the numbers of one rank, resuming with another number, signals, a rank that ends.
. tests/tap.sh
cd "$tmp" || exit 1
. "$here/tests/recipes/ranks.sh"

# ---- the numbers of one rank ----
# alike FOLDER PROGRAM OPTION... - 1 x 4 micro-batches, 2 x 2 and 4 x 1: their figures agree.
alike() {
    of=$1 program=$2
    shift 2
    for n in 1 2 4; do
        "$BUILD/$program" "$@" --accumulate $((4 / n)) --ranks $n --output "$of$n" >"$of$n.out" 2>&1 || { tail -n 5 "$of$n.out"; return 1; }
    done
    agree "${of}1" "${of}2" && agree "${of}1" "${of}4"
}
is "full: 1 x 4, 2 x 2 and 4 x 1 have the same figures" alike full finetune_full $rows --epochs 2
is "... and the last step of an epoch has fewer rows than ranks need" eval 'figures full4 | grep -q "^4 rows [1-5]$"'
is "packing" alike pack finetune_full $rows --packing --epochs 2
is "Muon, averages, checkpointing" alike muon finetune_full $rows --optimizer muon --ema 0.9 --activation-checkpointing full --max-steps 5
is "LoRA with dropout, and NEFTune's noise" alike lora finetune_lora $rows --lora-dropout 0.2 --neftune-alpha 5 --max-steps 6
is "QLoRA" alike qlora finetune_lora $rows --base-dtype nf4 --max-steps 4
is "DPO with a frozen base" alike dpo finetune_dpo $pairs --epochs 2
is "DPO of all weights: each rank computes its share of the reference" alike whole finetune_dpo $pairs --lora-r 0 --epochs 2
is "KTO" alike kto finetune_dpo $pairs --loss kto --lora-r 0 --epochs 2
is "answers and metrics at evaluations" alike said finetune_full $rows --eval-metrics exact_match --eval-answers 4 --max-steps 4

# ---- the same number of ranks: the same bits ----
again() { "$full" $rows --epochs 2 --accumulate 1 --ranks 3 --output "$1" >"$1.out" 2>&1 || { tail -n 5 "$1.out"; return 1; }; }
is "three ranks, which divide no size" again third
is "... twice: the same bits" eval 'again third2 && same_run third third2 README.md'
is "one run folder, written by rank 0 alone" eval '[ "$(ls -d runs 2>/dev/null | wc -l)" = 0 ] && [ "$(grep -c "^# run folder" third.out)" = 1 ]'
is "the header says how many there are" grep -q '^# ranks  *3 processes, 3 of them on ' third.out
is "a file gets no progress bars" eval '! grep -q "\[###" third.out && grep -q "^step  *1/" third.out'

# ---- a row of one rank that makes its loss infinite ----
# The embedding of Z is infinite, and one row has it.
tiny infinite 1 --dtype float32 --like tinyllama-1.1b >/dev/null && file=infinite/model.safetensors
sed '20s/Say/ZZZ/' rows.jsonl >zebra.jsonl
header=$(od -An -t u8 -N 8 $file | tr -d ' ')
first=$(head -c $((8 + header)) $file | tail -c "$header" | sed 's/.*"model.embed_tokens.weight":{[^}]*"data_offsets":\[\([0-9]*\),.*/\1/')
z=$(tr ',{' '\n\n' <infinite/tokenizer.json | sed -n 's/^ *"Z" *: *\([0-9]*\).*/\1/p')
printf '\000\000\200\177' | dd of=$file bs=1 seek=$((8 + header + first + z * 256)) conv=notrunc 2>/dev/null
ends() { # NAME OPTION... - where the run ends
    ! "$full" $rows --model infinite --dataset zebra.jsonl --train-split 1 --eval-every 0 --max-steps 30 --output "$@" >ends.out 2>&1 && grep -o "^finetune_full: diverged at step [0-9]*: the loss is not finite (that step left the weights as they were)" ends.out || { tail -n 3 ends.out; return 1; }
}
is "one rank: the run ends" eval 'ends infinite1 --accumulate 2 >ended'
for shard in ddp optimizer fsdp; do is "... two ranks, $shard: at the same step, said once" eval 'ends infinite$shard --ranks 2 --shard $shard | cmp - ended'; done

# ---- bytes ----
# sent N STEPS OPTION... - bytes that rank 0 of N sent in that many steps.
sent() {
    ranks=$1 steps=$2
    shift 2
    "$full" $rows --eval-every 0 --ranks "$ranks" --max-steps "$steps" "$@" --output sent --overwrite >sent.out 2>&1 || { tail -n 5 sent.out >&2; return 1; }
    figure sent rank_sent_bytes
}
# counted N - ten steps send 2 (N - 1) / N times the float32 gradients, within 1 %.
counted() {
    few=$(sent "$1" 4) && many=$(sent "$1" 14) || return 1
    weights=$(($(wc -c <sent/checkpoint-final/model.safetensors) - 8 - $(od -An -t u8 -N 8 sent/checkpoint-final/model.safetensors)))
    echo "rank 0 of $1 sent $(((many - few) / 10)) bytes a step; the weights have $weights"
    awk -v sent=$((many - few)) -v w="$weights" -v n="$1" 'BEGIN { d = sent / 10 / (2 * (n - 1) / n * w) - 1; exit !(d * d < 1e-4) }'
}
for n in 2 3; do is "$n ranks send the bytes of the arithmetic" counted $n; done
is "... as many if a step has four micro-batches: only the last one is sent" eval 'one=$(sent 2 4) && four=$(sent 2 4 --accumulate 4) && echo "$one, $four" && [ $((four - one)) -lt $((one / 100)) ] && [ $((one - four)) -lt $((one / 100)) ]'
is "--profile says how much of them ran beside backward" eval '"$full" $rows --ranks 2 --max-steps 6 --profile 3 --output profile >profile.out 2>&1 && grep -q "^#   ranks  *[0-9.]* " profile.out && grep -q "^# ranks  *gradients moved for [0-9.]* s so far; steps waited for [0-9.]* s of it, and [0-9]* % ran beside backward" profile.out || { cat profile.out; false; }'

# ---- cores ----
# allowed FOLDER N - the processors that each of N ranks may use, a line each, while they run; without --threads.
allowed() {
    who=$1 n=$2
    shift 2
    "$@" "$full" ${rows% --threads 1} --max-steps 10000000 --eval-every 0 --output "$who" >"$who.out" 2>&1 &
    run=$!
    await $run grep -q '^step' "$who.out"
    for pid in $(pgrep -f "$full.*--output $who"); do
        tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -q '^OMPI_COMM_WORLD_RANK=' && sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$pid/status"
    done | sort >"$who.cpus"
    kill -TERM $run
    wait $run
    [ "$(wc -l <"$who.cpus")" = $n ] || { cat "$who.cpus"; tail -n 3 "$who.out"; return 1; }
}
if [ "$(nproc)" -ge 2 ]; then
    by_ranks() { "$@" --ranks 2; }
    is "each of two ranks is bound to cores of its own" eval 'allowed bound 2 by_ranks && [ "$(uniq bound.cpus | wc -l)" = 2 ] && grep -q "^# ranks .*bound to [0-9]* core" bound.out'
    is "three ranks on two cores are not bound" eval 'by_three() { taskset -c 0,1 "$@" --ranks 3; }; allowed three 3 by_three && [ "$(uniq three.cpus)" = 0-1 ] && ! grep -q "^# ranks .*bound" three.out'
    is "binding by mpirun is kept" eval 'OMPI_MCA_hwloc_base_binding_policy=core && export OMPI_MCA_hwloc_base_binding_policy && allowed theirs 2 by_ranks; code=$?; unset OMPI_MCA_hwloc_base_binding_policy; [ $code = 0 ] && [ "$(uniq theirs.cpus | wc -l)" = 2 ] && ! grep -q "^# ranks .*bound" theirs.out'
else
    skip "each rank is bound to cores of its own" "one core"
fi

# ---- going on ----
half() { "$full" $rows --epochs 2 --accumulate "$2" --ranks "$1" --stop-at-step 3 --output "$3" >"$3.out" 2>&1 || { tail -n 5 "$3.out"; return 1; }; }
is "stop at step 3 of a run on two ranks" half 2 2 part
is "... and go on, with two ranks: to the bit as without a stop" eval '"$full" --resume part --ranks 2 --stop-at-step 0 >more.out 2>&1 && same_run full2 part README.md || { tail -n 5 more.out; false; }'
is "stop at step 3 again" half 2 2 other
is "... and go on with four ranks of one micro-batch: the same rows, the same figures" eval '
    "$full" --resume other --ranks 4 --stop-at-step 0 >more.out 2>&1 && agree full1 other && grep -q "^# ranks .*; before, the run had 2; --accumulate is now 1$" more.out || { tail -n 5 more.out; false; }'
is "stop once more" half 2 2 copy
is "... and go on alone, with the accumulation that makes the same step" eval '
    "$full" --resume copy --ranks 1 --stop-at-step 0 >more.out 2>&1 && agree full1 copy && grep -q "^# ranks  *one process; before, the run had 2; --accumulate is now 4$" more.out || { tail -n 5 more.out; false; }'
is "... the launcher says how many ranks there are, whatever the run had" eval 'half 2 2 launched && mpirun --allow-run-as-root --oversubscribe -n 4 "$full" --resume launched --stop-at-step 0 >more.out 2>&1 && agree full1 launched || { tail -n 5 more.out; false; }'
refused "... three ranks cannot share 4 micro-batches" 2 "--resume: a step of that run has 4 micro-batches, on 1 rank; 3 with --accumulate 4 would have 12; start a number of ranks that divides it, or give --allow-changed" "$full" --resume copy --ranks 3
refused "... nor is another accumulation the same step" 2 "2 with --accumulate 4 would have 8; leave --accumulate out" "$full" --resume copy --ranks 2 --accumulate 4

# ---- the end ----
# rank R FOLDER - the process of that rank.
rank() {
    for pid in $(pgrep -f "$full.*--output $2"); do
        tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -q "^OMPI_COMM_WORLD_RANK=$1\$" && echo "$pid" && return
    done
}
begin() { # FOLDER OPTION... - a run without an end, up to its first checkpoint
    who=$1
    shift
    "$full" $rows --max-steps 10000000 --save-every 20 --keep-last 1 --output "$who" "$@" >"$who.out" 2>&1 &
    run=$!
    await $run eval "ls $who | grep -q '^checkpoint-[0-9]*\$'"
}
whole() { ls -d "$1"/checkpoint-*[0-9] | head -n 1 | { read -r c && [ -s "$c/model.safetensors" ] && [ -s "$c/state/progress.json" ]; } && ! ls -d "$1"/*.tmp* 2>/dev/null; }
ended() { wait "$run"; code=$?; [ $code = "$1" ] || { echo "exit code $code"; tail -n 5 "$who.out"; return 1; }; }
is "SIGTERM to the program: all ranks finish the step, and rank 0 saves" eval 'begin term --ranks 2 && kill -TERM $run && ended 143 && grep -q "^# stopped  *SIGTERM at step" term.out && whole term'
is "SIGTERM to rank 1 alone: all stop at the same step" eval 'begin alone --ranks 2 && kill -TERM "$(rank 1 alone)" && ended 143 && grep -q "^# stopped  *SIGTERM at step" alone.out && whole alone'
# mpirun kills the others two seconds after one has ended; here after six, for slow machines.
export OMPI_MCA_odls_base_sigkill_timeout=3
is "rank 1 of 3 is killed: the others say so and end, and the checkpoint is whole" eval '
    begin killed --ranks 3 && kill -KILL "$(rank 1 killed)" && ! { wait $run; } && grep -qE "^finetune_full: (rank 2 of 3 on .*: )?rank 1 of 3 \(process [0-9]* on .*\) has ended" killed.out && whole killed || { cat killed.out; ls killed; false; }'
is "... no process is left" eval 'await 0 eval "! pgrep -f -- \"$full.*--output killed\""'
listed() { n=$(grep -c '"operation":' $1/run.json) && [ "$n" -gt 10 ] && [ "$n" -le 64 ] && [ "$(grep -c '"at_s":' $1/run.json)" = "$n" ] &&
    grep '"completed":' $1/run.json | awk '{ last = /false/; bad += last } END { exit !(last && bad == 1) }' || { tail -n 40 $1/run.json; return 1; }; }
is "... run.json says that it failed, and lists the last collectives: all but the last completed" eval 'grep -q "\"status\":.*\"failed\"" killed/run.json && listed killed'
is "rank 0 of 3 is killed: one of the others names it and its host" eval '
    begin first --ranks 3 && await $run test -e first/checkpoint-best && kill -KILL "$(rank 0 first)" && ! { wait $run; } &&
    [ "$(grep -c "^finetune_full: rank [12] of 3 on .*: rank 0 of 3 (process [0-9]* on $(hostname)) has ended" first.out)" = 1 ] || { cat first.out; false; }'
is "... one that is left lists the last collectives" eval 'grep -q "has ended" first/collectives.json && n=$(grep -c "\"operation\":" first/collectives.json) && [ "$n" -gt 10 ] && [ "$n" -le 64 ] || { cat first/collectives.json; false; }'
unset OMPI_MCA_odls_base_sigkill_timeout
for who in killed first; do
    is "... and run $who goes on from its checkpoint" eval '"$full" --resume $who --ranks 3 --stop-at-step 100000 --stop-after-seconds 0 >more.out 2>&1 && grep -q "^# stopped" more.out || { tail -n 5 more.out; false; }'
done
is "... without the list of its first end" eval '[ ! -e first/collectives.json ]'
is "rank 1 stands still: the others give up after --timeout" eval '
    begin still --ranks 2 --timeout 10 && kill -STOP "$(rank 1 still)" && ! { wait $run; } && grep -q "rank 1 of 2.* did not come within 10 s\|no bytes came for 10 s" still.out && whole still'
is "rank 0 stands still while it saves: the others give up, too" eval '
    "$full" $rows --ranks 2 --timeout 10 --save-every 1 --max-steps 100000 --eval-every 0 --output asleep >asleep.out 2>&1 </dev/null & run=$!
    await $run eval "ls asleep | grep -q \"^checkpoint-[0-9]*\\.tmp\"" && kill -STOP "$(rank 0 asleep)" && ! { wait $run; } && grep -q "rank 0 of 2.* did not come within 10 s\|no bytes came for 10 s" asleep.out || { tail -n 3 asleep.out; false; }'
is "... and it is ended, too" eval 'await 0 eval "! pgrep -f -- \"$full.*--output still\""'

# ---- what is refused ----
refused "a file that is not there: said once" 2 "finetune_full: none.jsonl: no such file" "$full" $rows --dataset none.jsonl --ranks 2
is "... by rank 0" eval '! grep -q "rank 1" complained || { cat complained; false; }'
printf '#include <stdlib.h>\n#include <unistd.h>\n__attribute__((destructor)) static void late(void) { if (getenv("OMPI_COMM_WORLD_RANK")) sleep(3); }\n' >late.c
if sanitized || ! $CC -shared -fPIC -o late.so late.c; then
    skip "rank 0 says so, and takes long to end" "no library can be put before this build"
else
    refused "rank 0 says so, and takes long to end" 2 "finetune_full: none.jsonl: no such file" env LD_PRELOAD="$tmp/late.so" "$full" $rows --dataset none.jsonl --ranks 2
    is "... rank 1 does not repeat it" eval '! grep -q "rank 1" complained || { cat complained; false; }'
fi
refused "no mpirun" 2 "--ranks 2 needs mpirun" env PATH=/nothing "$full" $rows --ranks 2
refused "no tune_mpi.so" 3 "cannot load $tmp/none.so" env TUNE_MPI="$tmp/none.so" "$full" $rows --ranks 2 --output none
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
is "rank 1 stands still before MPI has started: the other gives up" eval '! mpirun -q --bind-to none -n 1 "$full" $rows --timeout 2 --output early : -n 1 sh -c "kill -STOP \$\$" >early.out 2>&1 && grep -q "^finetune_full: ranks: MPI did not start within 2 s (--timeout): one of them stands still" early.out || { cat early.out; false; }'
refused "ranks with other options" 2 "ranks differ in their options: rank 1 on" \
    mpirun -q --bind-to none -n 1 "$full" $rows --max-steps 2 --output differ : -n 1 "$full" $rows --max-steps 3 --output differ
refused "another number of ranks than mpirun started" 2 "--ranks is 3, and the launcher started 2" mpirun -q --bind-to none -n 2 "$full" $rows --ranks 3 --output differ
# Two machines whose folders differ: rank 1 is in the folder elsewhere.
mkdir elsewhere && cp -r model rows.jsonl elsewhere
two() { mpirun -q --bind-to none -n 1 "$full" $rows --max-steps 2 --overwrite --output "$tmp/differ" : -n 1 -wdir elsewhere "${full2:-$full}" $rows --max-steps 2 --overwrite --output "$tmp/differ"; }
is "two folders with the same files" eval 'two >two.out 2>&1 || { cat two.out; false; }'
sed -i '$s/Say/Ask/' elsewhere/rows.jsonl
refused "ranks with other data" 2 "ranks differ in the rows of --dataset: rank 1 on" two
cp rows.jsonl elsewhere
# change FILE SED-COMMAND - in the folder of rank 1.
change() { sed -i "$2" "elsewhere/$1" && ! cmp -s "$1" "elsewhere/$1"; }
back() { cp "$1" "elsewhere/$1"; }
for one in config.json:rms_norm_eps tokenizer.json:content; do
    file=${one%:*}
    change model/$file "0,/${one#*:}/s/${one#*:}\(\" *: *\)/${one#*:}\1 /"
    refused "ranks with another $file" 2 "ranks differ in the files of --model beside its weights, such as config.json and tokenizer.json: rank 1 on" two
    back model/$file
done
head -n 5 rows.jsonl >held.jsonl && cp held.jsonl elsewhere
trainer=$full
with() { extra=$1; mpirun -q --bind-to none -n 1 "$trainer" $rows --max-steps 2 --overwrite --output "$tmp/differ" $extra : -n 1 -wdir elsewhere "$trainer" $rows --max-steps 2 --overwrite --output "$tmp/differ" $extra; }
is "equal files of other options" eval 'with "--train-split 1 --eval-dataset held.jsonl" >differ.out 2>&1 || { cat differ.out; false; }'
change held.jsonl '$s/Say/Ask/'
refused "ranks with other rows to evaluate" 2 "ranks differ in the files of --eval-dataset: rank 1 on" with "--train-split 1 --eval-dataset held.jsonl"
is "an adapter to go on with" eval '"$BUILD/finetune_lora" $rows --max-steps 1 --lora-r 2 --output lora >lora.out 2>&1 && cp -rL lora/checkpoint-final adapter && cp -r adapter elsewhere'
change adapter/adapter_config.json 's/"lora_alpha": *[0-9.]*/"lora_alpha": 999/'
trainer=$BUILD/finetune_lora
refused "ranks with another adapter" 2 "ranks differ in the files of --adapter: rank 1 on" with "--adapter adapter"
printf 'X' | dd of=elsewhere/model/model.safetensors bs=1 seek=20000 conv=notrunc 2>/dev/null
refused "ranks with another model" 2 "ranks differ in the weights of --model: rank 1 on" two
cp model/model.safetensors elsewhere/model && cp "$here/recipes/finetune_full.c" changed.c && echo 'const int another = 1;' >>changed.c
is "another build" eval '(cd "$here" && sh tests/recipes/build.sh "$tmp/tree2" "$tmp/changed.c") && export TUNE_DEFAULTS=$here/defaults'
full2=$tmp/tree2/build/changed
refused "ranks of another build" 2 "ranks differ in the build of the program: rank 1 on" two
full2=
refused "ranks on other devices" 2 "ranks differ in the device: its processor, threads and kernels: rank 1 on" mpirun -q --bind-to none -n 1 "$full" $rows --output differ --overwrite : \
    -n 1 env TUNE_CPU=x86-64-v2 "$full" $rows --output differ --overwrite
is "... the run has failed, and says why" eval '"$BUILD/runs" show differ >shown 2>&1; grep -q "failed" shown && grep -q "ranks differ" shown || { cat shown; false; }'
is "more ranks than cores: said in the header" eval '"$full" $rows --max-steps 2 --ranks $(($(nproc) + 1)) --output many >many.out 2>&1 && grep -qE "^# ranks  *$(($(nproc) + 1)) processes, .*, which take turns on [0-9]+ cores?; each has" many.out || { cat many.out; false; }'
# A disk that is full for one rank.
limited() { mpirun -q --bind-to none -n 1 sh -c "$1 exec \"\$0\" \"\$@\"" "$full" $rows --max-steps 4 --save-every 2 --output filled : -n 1 sh -c "$2 exec \"\$0\" \"\$@\"" "$full" $rows --max-steps 4 --save-every 2 --output filled; }
refused "a full disk on rank 0: one message, and all end" 1 "File too large" limited "ulimit -f 40;" ""
is "... rank 1 says nothing of its own" eval '[ "$(grep -c "^finetune_full: " complained)" = 1 ] || { cat complained; false; }'
rm -rf filled
is "a full disk on rank 1, which writes nothing" eval 'limited "" "ulimit -f 40;" >limited.out 2>&1 || { cat limited.out; false; }'
both() { [ "$(grep -c "$1" both.out)" = 2 ] || { cat both.out; return 1; }; }
is "programs without --ranks print in each process of a launcher" eval 'mpirun -q -n 2 "$BUILD/runs" --version >both.out 2>&1 && both "^runs, "'
is "... and so do recipes with --ranks 1, which train alone" eval '
    mpirun -q -n 2 sh -c "\"$full\" $rows --ranks 1 --max-steps 1 --output single\$OMPI_COMM_WORLD_RANK" >both.out 2>&1 && both "^# finished" && same_run single0 single1 README.md'
sed /tune_model_reduce/d "$here/recipes/finetune_full.c" >apart.c
sed /tune_get_comm/d "$here/recipes/finetune_full.c" >single.c
is "two recipes that lack a line for ranks" eval '(cd "$here" && sh tests/recipes/build.sh "$tmp/tree" "$tmp/apart.c" "$tmp/single.c")'
refused "one that does not add up is refused" 1 "call tune_model_reduce before tune_optimizer_scale" "$tmp/tree/build/apart" $rows --ranks 2 --output apart
refused "one that does not know of ranks is refused" 2 "this recipe does not call tune_get_comm" "$tmp/tree/build/single" $rows --ranks 2 --output apart2
run_threads() { sed -n 's/^# device .*, \([0-9]*\) threads*, .*/\1/p' "$1"; }
free=$(printf '%s\n' "$rows" | sed 's/ --threads 1//')
is "a run of two ranks that goes on as one takes all cores again" eval '"$full" $free --ranks 2 --stop-at-step 2 --output wider >wide.out 2>&1 && "$full" --resume wider --ranks 1 --stop-at-step 0 >wider.out 2>&1 &&
    "$full" $free --max-steps 1 --output alone1 >one.out 2>&1 && [ -n "$(run_threads one.out)" ] && [ "$(run_threads wider.out)" = "$(run_threads one.out)" ] || { tail -n 4 wide.out wider.out; false; }'
is "mpirun typed by hand" eval 'mpirun -q --bind-to none -n 2 "$full" $rows --epochs 2 --accumulate 2 --output hand >hand.out 2>&1 && same_run full2 hand README.md'
finish
