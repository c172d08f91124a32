#!/bin/sh
# peers.sh - run every tests/peers/*_peer.py, each a live comparison with the field's own libraries.
# Scripts named *_ado_peer.py compare with IBM's ado, which has a Python environment of its own, for its packages want other
# versions of what the others use. Scripts named *_llama_peer.py compare with llama.cpp, whose wheel is in one of its own, too:
# it needs nothing of what the others have.
#   TUNE_VENV      the environment of the others, filled from tests/requirements.txt (default ~/.cache/tune.c/venv)
#   TUNE_VENV_ADO  ado's, filled from tests/requirements-ado.txt (default ~/.cache/tune.c/venv-ado)
#   TUNE_VENV_LLAMA  llama.cpp's, filled from tests/requirements-llama.txt (default ~/.cache/tune.c/venv-llama)
# Each is made, and filled with exactly those versions, if it does not have them; where that cannot be done, every script it
# is for counts as skipped, with the reason. BUILD: where the programs to compare are (default build).
# lm_eval_peer.py has an environment of its own, too, which sees the packages of the others'.
#   TUNE_VENV_LM_EVAL  that one, filled from tests/requirements-lm-eval.txt (default ~/.cache/tune.c/venv-lm-eval)
#   peers.sh ado              runs the scripts for ado alone
#   peers.sh llama            those for llama.cpp alone
#   peers.sh lm-eval          lm_eval_peer.py, which runs by this word alone
#   peers.sh python COMMAND   runs the command in the environment of the others, whose "python" comes first
#   peers.sh llama COMMAND    the same in llama.cpp's; lm-eval COMMAND in lm-eval's
cd "$(dirname "$0")/.." || exit 1
cache=${HOME:-/tmp}/.cache/tune.c
BUILD=${BUILD:-build}
# What the system's Python or the user's home has must not leak in.
unset PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX
export BUILD PYTHONNOUSERSITE=1 PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 HF_HUB_DISABLE_PROGRESS_BARS=1 TOKENIZERS_PARALLELISM=false

right() { # VENV REQUIREMENTS MODULE... - the environment has these versions, and the modules import
    [ -x "$1/bin/python" ] && "$1/bin/python" - "$@" <<'PYTHON'
import importlib, importlib.metadata, sys
if sys.prefix == sys.base_prefix:
    sys.exit(1)  # no environment of its own
for line in open(sys.argv[2]):
    name, _, version = line.split("#")[0].strip().partition("==")
    if name and importlib.metadata.version(name).split("+")[0] != version:
        sys.exit(1)
for module in sys.argv[3:]:
    importlib.import_module(module)
PYTHON
}

. tests/venv.sh

make() { # VENV REQUIREMENTS MODULE...
    if [ "$2" = "$lm_eval" ]; then
        # shellcheck disable=SC2086 # one word each
        right "$venv" tests/requirements.txt $modules >/dev/null 2>&1 || make "$venv" tests/requirements.txt $modules || return 1
        set -- "$own" "$lm_eval" lm_eval
        make_venv_beside "$1" "$venv" "$log" || return 1
    else
        make_venv "$1" "$log" || return 1
    fi
    echo "# installing the versions of $2 into $1 (once; up to some gigabytes)"
    timeout 2400 "$1/bin/python" -m pip install -q --disable-pip-version-check -r "$2" >"$log" 2>&1 ||
        { why="pip cannot install $2: $(grep -i error "$log" | tail -n 1 | cut -c1-200)"; return 1; }
    right "$@" >"$log" 2>&1 || { why="the packages do not import: $(tail -n 1 "$log" | cut -c1-200)"; return 1; }
}

# compare SCRIPTS VENV REQUIREMENTS MODULE... - run the scripts in the environment; its totals go to $totals.
compare() {
    scripts=$1
    shift
    why=
    if right "$@" >/dev/null 2>&1 || make "$@"; then
        isa=
        [ "$2" != tests/requirements.txt ] || isa=$("$1/bin/python" tests/peers/onednn.py)
        if [ -n "$isa" ]; then
            echo "# PyTorch's AMX products end with an illegal instruction on this machine: ONEDNN_MAX_CPU_ISA=$isa"
            export ONEDNN_MAX_CPU_ISA="$isa"
        fi
        # shellcheck disable=SC2086 # one word each
        TUNE_TEST_TOTALS=$totals TUNE_PYTHON=$1/bin/python sh tests/run.sh $scripts || failed=1
        return
    fi
    n=0
    for t in $scripts; do
        n=$((n + 1))
        echo "ok $n - $t # SKIP $why"
    done
    echo "0 0 $n" >>"$totals"
}

log=$(mktemp)
totals=$(mktemp)
trap 'rm -f "$log" "$totals"' EXIT
venv=${TUNE_VENV:-$cache/venv} modules="peft tokenizers torch transformers"
own=${TUNE_VENV_LM_EVAL:-$cache/venv-lm-eval} lm_eval=tests/requirements-lm-eval.txt
if [ $# -gt 1 ]; then
    requirements=tests/requirements.txt
    case $1 in
    llama) venv=${TUNE_VENV_LLAMA:-$cache/venv-llama} requirements=tests/requirements-llama.txt modules="xllamacpp gguf" ;;
    lm-eval) venv=$own requirements=$lm_eval modules=lm_eval ;;
    esac
    shift
    # shellcheck disable=SC2086 # one word each
    right "$venv" $requirements $modules >/dev/null 2>&1 || make "$venv" $requirements $modules ||
        { echo "tests/peers.sh: $why" >&2; exit 1; }
    rm -f "$log" "$totals"
    PATH=$venv/bin:$PATH exec "$@"
fi
failed=0 ado= llama= others= harness=tests/peers/lm_eval_peer.py
for t in tests/peers/*_peer.py; do
    case $t in "$harness") ;; *_ado_peer.py) ado="$ado $t" ;; *_llama_peer.py) llama="$llama $t" ;; *) others="$others $t" ;; esac
done
case ${1:-} in ado) others= llama= harness= ;; llama) others= ado= harness= ;; lm-eval) others= ado= llama= ;; *) harness= ;; esac
# shellcheck disable=SC2086
[ -z "$others" ] || compare "$others" "$venv" tests/requirements.txt $modules
[ -z "$ado" ] || compare "$ado" "${TUNE_VENV_ADO:-$cache/venv-ado}" tests/requirements-ado.txt ado
# shellcheck disable=SC2086
[ -z "$llama" ] || compare "$llama" "${TUNE_VENV_LLAMA:-$cache/venv-llama}" tests/requirements-llama.txt xllamacpp gguf
[ -z "$harness" ] || compare "$harness" "$own" "$lm_eval" lm_eval
if [ -n "${TUNE_TEST_TOTALS:-}" ]; then
    cat "$totals" >>"$TUNE_TEST_TOTALS"
else
    awk '{ p += $1; f += $2; s += $3 } END { print p + 0 " passed, " f + 0 " failed, " s + 0 " skipped" }' "$totals"
fi
[ $failed = 0 ]
