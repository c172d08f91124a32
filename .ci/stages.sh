# stages.sh - which stages .ci/run runs for a commit. Sourced, from inside a git clone.
# Stages are targets of make. Some always run. A longer one runs when a file it covers changed in the last 20 commits, and
# else on every fourth commit. Commits are counted along the first parents, so that merges leave out no fourth one.
# Nothing is stored: when a stage ran last follows from the history by the same rule.
always="test test-cuda test-peers"
longer="test-cuda-compiled test-asan test-valgrind fuzz faults test-slurm test-aarch64"
window=20 every=4

# covers STAGE - the files that can change what a longer stage finds, as git's pathspecs.
covers() {
    echo Makefile tools/setup.sh tools/configure.sh tests/run.sh tests/tap.sh
    case $1 in
    test-cuda-compiled) echo components/devices/cuda components/devices/ops.h components/core/nf4.h tests/cuda_compiled.sh \
        tests/cuda_compiled.txt tests/requirements-cuda.txt tests/venv.sh tests/cuda_on_cpu tests/bench/bench_gpu.c tests/bench/gpu_step.h ;;
    test-asan) echo components recipes tools datasets defaults tests :!tests/bench :!tests/peers ;;
    test-valgrind) echo components :!components/sweeps :!components/views recipes tools/init_model.c tools/tokenize.c tests/valgrind.sh ;;
    fuzz) echo components :!components/devices :!components/losses :!components/optimizers :!components/views tests/fuzz \
        tests/fuzz.sh ;;
    faults) echo components/core components/files components/machine components/runs components/checkpoints \
        components/loggers components/evaluators components/profilers components/flags components/adapters \
        components/sweeps recipes tools/sweep.c tools/sweep tools/merge_adapter.c tests/faults tests/faults.sh tests/faults_sweep.sh ;;
    test-slurm) echo components/sweeps/discovery components/sweeps/stores components/machine/slurm.c components/machine/process.c \
        components/machine/child.c components/machine/guard.c \
        components/flags/resume.c components/flags/program.c tools/sweep.c tools/sweep tests/slurm* tests/sweep_ssh.sh \
        tests/sweep_container.sh tests/sweep_work.sh tests/faults/slow_kill.c ;;
    test-aarch64) echo components/core components/devices :!components/devices/cuda components/models tests/test_kernels.c tests/aarch64.sh tools/aarch64.sh ;;
    esac
}

# known_history - true if the clone has enough history to go by; else $why says what is missing.
known_history() {
    if ! commit=$(git rev-parse --verify --quiet HEAD 2>&1); then
        why="no git history here"
    elif [ "$(git rev-parse --is-shallow-repository)" != false ]; then
        why="a shallow clone has no history to go by"
    else
        return 0
    fi
    return 1
}

# due STAGE COMMIT - true if the stage runs for that commit; $why says the reason, or why not.
due() {
    case " $always " in *" $1 "*) why="always" && return 0 ;; esac
    if ! git rev-parse --verify --quiet "$2~$window^{commit}" >/dev/null; then
        why="fewer than $window commits before this one"
    elif ! (set -f && git diff --quiet "$2~$window" "$2" -- $(covers "$1")); then
        why="files it covers changed in the last $window commits"
    elif [ $(($(git rev-list --count --first-parent "$2") % every)) = 0 ]; then
        why="every fourth commit"
    else
        why="nothing that it covers changed in the last $window commits"
        return 1
    fi
}

# last_run STAGE COMMIT - the newest commit before that one for which the stage was due: one of the three before it.
last_run() {
    for earlier in $(git rev-list --first-parent --skip=1 --max-count=$((every - 1)) "$2"); do
        if due "$1" "$earlier"; then
            git log -1 --format='%h (%s)' "$earlier"
            return
        fi
    done
}
