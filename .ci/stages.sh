# stages.sh - which stages .ci/run runs for a commit, and in which order. Sourced, from inside a git clone.
# Stages are targets of make. Some always run. A longer one is due unless .ci/ran.txt says that it passed for the same contents
# of the files that it covers. Of those that are due, the one that ran longest ago comes first.
# .ci/ran.txt is committed. It has a line for each longer stage: STAGE DATE CONTENTS TURNS. CONTENTS is a hash (contents below).
# TURNS counts the runs since the stage last ran all of its test programs; in between it runs those whose objects changed.
always="test test-cuda test-peers"
longer="test-cuda-compiled test-asan test-valgrind fuzz faults test-slurm test-aarch64 test-lm-eval test-browser"
beside="test-slurm faults" # the longer stages that mostly wait: they run beside the others, one after the other
partial="test-asan test-aarch64" # stages that leave out test programs whose objects are those of a run that passed
whole_every=5
ran=.ci/ran.txt programs=.ci/programs.txt

# covers STAGE - the files that can change what a longer stage finds, as git's pathspecs.
covers() {
    echo Makefile tools/setup.sh tools/configure.sh tests/run.sh tests/tap.sh
    case $1 in
    test-cuda-compiled) echo components/devices 'components/*.h' recipes tools/init_model.c datasets tests/cuda_compiled.sh \
        tests/cuda_compiled.txt tests/cuda_on_cpu tests/bench/bench_gpu.c tests/bench/gpu_step.h tests/bench/gpu_figure.h \
        tests/gpu.sh tests/gpu_pack.sh tests/requirements-cuda.txt tests/venv.sh ;;
    test-asan) echo components recipes tools datasets defaults tests :!tests/bench :!tests/peers ;;
    test-valgrind) echo components :!components/sweeps :!components/views recipes tools/init_model.c tools/tokenize.c datasets defaults tests/valgrind.sh ;;
    fuzz) echo components :!components/devices :!components/losses :!components/optimizers :!components/views tests/fuzz \
        tests/fuzz.sh ;;
    faults) echo components/core components/files components/machine components/runs components/checkpoints \
        components/loggers components/evaluators components/profilers components/flags components/adapters \
        components/sweeps recipes tools/sweep.c tools/sweep tools/merge_adapter.c tools/init_model.c datasets defaults tests/faults tests/faults.sh tests/faults_sweep.sh \
        components/comm tests/comm tests/helpers/ranks.c tests/faults_ranks.sh ;;
    test-slurm) echo recipes docs/resume.md components/sweeps components/comm components/machine/slurm.c components/machine/process.c \
        components/machine/child.c components/machine/guard.c \
        components/flags/resume.c components/flags/program.c tools/sweep.c tools/sweep tests/slurm tests/faults/slow_kill.c ;;
    test-lm-eval) echo components/core components/files components/tokenizers components/metrics components/templates components/models \
        components/generators components/evaluators components/flags recipes/evaluate.c tests/peers.sh tests/venv.sh tests/peers/lm_eval_peer.py \
        tests/requirements-lm-eval.txt tests/requirements.txt ;;
    test-browser) echo components/core components/files components/flags components/runs components/sweeps components/views \
        components/machine/child.c components/machine/guard.c recipes tools/studio.c tools/studio tools/sweep.c tools/init_model.c defaults \
        datasets tests/studio/browser.sh tests/studio/browser.py tests/peers/tap.py tests/venv.sh tests/requirements-browser.txt ;;
    test-aarch64) echo components recipes defaults datasets 'tests/*.h' 'tests/*/test_*.c' tests/fake_nvml.c tests/far tests/reference tests/aarch64.sh tools/aarch64.sh ;;
    esac
}

# contents STAGE - a hash of the names and contents of the files that it covers, as the index has them.
contents() { (set -f && git ls-files -s -- $(covers "$1")) | git hash-object --stdin | cut -c1-16; }
# committed STAGE - whether what it covers is as HEAD has it.
committed() { (set -f && git diff --quiet HEAD -- $(covers "$1") && [ -z "$(git ls-files -o --exclude-standard -- $(covers "$1"))" ]); }

# line STAGE - sets $ran_on, $ran_for and $ran_turns from .ci/ran.txt; all are empty without a line.
line() { read -r _ ran_on ran_for ran_turns <<LINE
$(grep "^$1 " "$ran" 2>/dev/null | tail -n 1)
LINE
}

# due STAGE - true if the stage is to run; $why says the reason, or why not.
due() {
    case " $always " in *" $1 "*) why="always" && return 0 ;; esac
    if ! git rev-parse --verify --quiet HEAD >/dev/null 2>&1; then
        why="no git here"
        return 0
    fi
    line "$1"
    if [ -z "$ran_for" ]; then
        why="$ran has no line of it"
    elif [ "$(contents "$1")" != "$ran_for" ]; then
        why="what it covers changed since it ran on $ran_on"
    elif ! committed "$1"; then
        why="what it covers has uncommitted changes"
    else
        why="it passed with the same contents on $ran_on"
        return 1
    fi
}

# in_order - the longer stages but those in $beside, the one that ran longest ago first. Those without a line come before, in turns: by a hash of HEAD.
in_order() {
    head=$(git rev-parse HEAD 2>/dev/null)
    for stage in $longer; do
        case " $beside " in *" $stage "*) continue ;; esac
        line "$stage"
        echo "${ran_on:-0} $(echo "$stage $head" | cksum | cut -d' ' -f1) $stage"
    done | sort | cut -d' ' -f3
}

# write STAGE DATE CONTENTS TURNS - its line.
write() {
    {
        grep '^#' "$ran" 2>/dev/null || echo "# What .ci/run ran and found right: STAGE DATE CONTENTS TURNS (.ci/stages.sh). Commit this file."
        { grep -v "^#\|^$1 " "$ran" 2>/dev/null; echo "$*"; } | sort
    } >"$ran.new" && mv "$ran.new" "$ran"
}
# next_turns STAGE - how many times it has run without being whole, this one among them.
next_turns() {
    case " $partial " in *" $1 "*) ;; *) echo 0 && return ;; esac
    if whole "$1"; then echo 0; else line "$1" && echo $((ran_turns + 1)); fi
}
# whole STAGE - whether a stage that leaves programs out is to run all of them.
whole() {
    line "$1"
    [ -z "$ran_turns" ] || [ "$ran_turns" -ge $((whole_every - 1)) ] || [ ! -e "$programs" ]
}
# state STAGE - what note compares: the contents if they are committed; else nothing.
state() { git rev-parse --verify --quiet HEAD >/dev/null 2>&1 && committed "$1" && contents "$1"; }
# note STAGE TURNS STATE - writes that the stage passed just now, if what it covers is committed and is as it was before: STATE.
note() {
    [ -z "$3" ] || [ "$(state "$1")" != "$3" ] || write "$1" "$(date -u +%Y-%m-%dT%H:%MZ)" "$3" "$2"
}
