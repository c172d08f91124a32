#!/bin/sh
# slurm_ranks.sh - a recipe on ranks that srun and sbatch start: by PMIx, and at an address. The examples of docs/clusters.md.
. tests/tap.sh
what="ranks on Slurm"
. tests/slurm/slurm_begin.sh
full=$BUILD/finetune_full
cd "$tmp" || exit 1
head -40 "$here/datasets/stories.jsonl" >rows.jsonl
tiny model 1 --dtype float32 >/dev/null
rows="--model model --dataset rows.jsonl --max-length 40 --batch-size 2 --lr 3e-3 --seed 31 --threads 1 --max-steps 4"
two() { grep -q "^# ranks  *$1 processes" "$2.out" && [ "$(grep -c '^# finished  *4 steps' "$2.out")" = 1 ] || { tail -n 5 "$2.out"; return 1; }; }
port=$((20000 + $$ % 400 * 20))
is "srun without PMIx: said, and nothing is trained" eval '! srun -n 2 -N 2 "$full" $rows --output none >none.out 2>&1 && grep -q "srun started 2 processes that cannot find each other; give srun --mpi=pmix" none.out && [ ! -e none ]'
is "srun on two nodes, at an address" eval 'MASTER_ADDR=127.0.0.1 MASTER_PORT=$port srun -n 2 -N 2 "$full" $rows --output address >address.out 2>&1; two 2 address'
if mpi_here && srun --mpi=list 2>&1 | grep -q pmix; then
    is "srun --mpi=pmix" eval 'srun --mpi=pmix -n 2 -N 1 "$full" $rows --output pmix >pmix.out 2>&1; two 2 pmix && same_run address pmix README.md'
else
    skip "srun --mpi=pmix" "no MPI, or a Slurm without PMIx"
fi
cat >job.sh <<E2
#!/bin/sh
#SBATCH --nodes=3 --ntasks-per-node=1
export MASTER_ADDR=\$(scontrol show hostnames "\$SLURM_JOB_NODELIST" | head -n 1) MASTER_PORT=$((port + 9))
[ -z "$tmp" ] || MASTER_ADDR=127.0.0.1 # the nodes of the tests have no names
srun "$full" $rows --output job
E2
is "a job of three nodes" eval 'sbatch --quiet --wait --output=job.out job.sh; two 3 job'
srun -n 2 -N 2 env MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port + 18)) "$full" $rows --max-steps 10000000 --save-every 10 --output killed >killed.out 2>&1 &
run=$!
is "a rank is killed: the step of the job ends, and says who" eval 'await $run test -e killed/checkpoint-10 && for pid in $(pgrep -f "^$full.*--output killed"); do
    tr "\0" "\n" <"/proc/$pid/environ" | grep -q "^SLURM_PROCID=1\$" && kill -KILL $pid; done; ! { wait $run; } && grep -q "rank 1 of 2 (process .*) has ended" killed.out || { tail -n 5 killed.out; false; }'
finish
