#!/bin/sh
# slurm_kills.sh - sweeps on Slurm while sweeps, jobs, measurements, slurmd and slurmctld are killed. Called by `make test-slurm`, as
# root. SLURM_KILLS: how often to kill (50).
. tests/slurm/slurm_common.sh
kills=${SLURM_KILLS:-50}

space killed.yaml 2000 2030 1
behind killed killed.yaml kil
measuring kil killed 8
kill -9 $pid
wait $pid 2>/dev/null
is "kill -9 of the sweep: jobs go on, and --resume finds what they did" eval 'await 0 eval "[ \$(rows kil a | wc -l) -ge 8 ]" && resume killed kil && says "^# finished +30 valid" && whole kil 2000 2030'
is "... it submitted no more jobs than needed" eval '[ "$(squeue -h -t all -o "%i %j" | grep -c killed)" -le 34 ]'

# draw N - $drawn is a random whole number from 0 to below N, the same ones each time.
seed=7919
draw() {
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$((seed / 65536 % $1))
}
# hit - kill something of the operation, or of Slurm.
hit() {
    leases=$(grep -l '^{"state":"held".*"job"' any/claims/any/* 2>/dev/null)
    draw 8
    lease=$(echo "$leases" | sed -n "$((drawn + 1))p")
    victim=$([ -z "$lease" ] || field "$lease" pid)
    # A lease may outlive its process: then the number is nobody's, or a stranger's.
    [ -z "$victim" ] || grep -qsx sweep "/proc/$victim/comm" || victim=
    draw 4
    node=n$((drawn + 1))
    draw 7
    case $drawn in
    0) kill -9 $pid; wait $pid 2>/dev/null ;;
    1 | 2) [ -z "$victim" ] || kill -9 "$victim" ;;
    3) [ -z "$victim" ] || kill -9 $(pgrep -P "$victim") ;; # the guard of what it measures
    4) p=$(cat "$cluster/slurmd-$node.pid"); kill -9 "$p"; await 0 dead "$p"; daemon slurmd $node ;;
    5) p=$(cat "$cluster/slurmctld.pid"); kill -9 "$p"; await 0 dead "$p"; daemon slurmctld ;;
    6) [ -z "$lease" ] || scontrol requeue "$(field "$lease" job)" ;;
    esac >>hits 2>&1
    echo "$drawn $node $victim" >>hits
}
space any.yaml 3000 3300 0.4
behind any any.yaml any --points-per-job 3
measuring any any 4
hits=0
while [ $hits -lt "$kills" ]; do
    draw 9
    sleep "0.$drawn"
    hit
    hits=$((hits + 1))
    kill -0 $pid 2>/dev/null || {
        "$sweep" --resume any --experiments work.json --store any --share-cores >>any.out 2>&1 &
        pid=$!
    }
done
wait $pid
code=$?
is "$kills random kills over sweep, jobs, measurements, slurmd and slurmctld: it ends" eval '[ $code = 0 ] || { tail -n 5 any.out; resume any any; }'
is "... nothing is lost, nothing twice" whole any 3000 3300
is "... each row is valid, or says that its measurement was killed" eval 'rows any status,reason | sort | uniq -c | tee ends && ! grep -vE "^ *[0-9]+ (valid,|failed,\"its guard was ended by signal 9, and the program with it\")$" ends'
finish
