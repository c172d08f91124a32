#!/bin/sh
# peers.sh - run every tests/peers/*_peer.py, each a live comparison with the field's own libraries.
# TUNE_VENV: the Python environment that holds them (default ~/.cache/tune.c/venv). It is made, and filled with exactly
# the versions of tests/requirements.txt, if it does not have them; where that cannot be done, every script counts as
# skipped, with the reason. BUILD: where the programs to compare are (default build).
cd "$(dirname "$0")/.." || exit 1
venv=${TUNE_VENV:-${HOME:-/tmp}/.cache/tune.c/venv}
requirements=tests/requirements.txt
BUILD=${BUILD:-build}
# What the system's Python or the user's home has must not leak in.
unset PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX
export BUILD PYTHONNOUSERSITE=1 PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 TOKENIZERS_PARALLELISM=false

right() {
    [ -x "$venv/bin/python" ] && "$venv/bin/python" - "$requirements" <<'PYTHON'
import importlib.metadata, sys
if sys.prefix == sys.base_prefix:
    sys.exit(1)  # no environment of its own
for line in open(sys.argv[1]):
    name, _, version = line.split("#")[0].strip().partition("==")
    if name and importlib.metadata.version(name).split("+")[0] != version:
        sys.exit(1)
import peft, tokenizers, torch, transformers
PYTHON
}

# Debian keeps the module venv needs in a package of its own.
have_venv() { python3 -c 'import ensurepip, venv' >/dev/null 2>&1; }

make() {
    command -v python3 >/dev/null 2>&1 || { why="python3 is not installed"; return 1; }
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { why="python3 is older than 3.10"; return 1; }
    if [ ! -x "$venv/bin/python" ]; then
        if ! have_venv && command -v apt-get >/dev/null 2>&1; then
            sudo=
            [ "$(id -u)" = 0 ] || sudo="sudo -n"
            { $sudo apt-get update -q && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends python3-venv; } >"$log" 2>&1
        fi
        have_venv || { why="python3 has no venv module (Debian: apt-get install python3-venv)"; return 1; }
        mkdir -p "$(dirname "$venv")" && python3 -m venv "$venv" >"$log" 2>&1 || { why="cannot make $venv: $(tail -n 1 "$log")"; return 1; }
    fi
    echo "# installing the versions of $requirements into $venv (once; some gigabytes)"
    timeout 2400 "$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$requirements" >"$log" 2>&1 ||
        { why="pip cannot install $requirements: $(grep -i error "$log" | tail -n 1 | cut -c1-200)"; return 1; }
    right >"$log" 2>&1 || { why="the packages do not import: $(tail -n 1 "$log" | cut -c1-200)"; return 1; }
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
why=
if ! right >/dev/null 2>&1 && ! make; then
    n=0
    for t in tests/peers/*_peer.py; do
        n=$((n + 1))
        echo "ok $n - $t # SKIP $why"
    done
    if [ -n "${TUNE_TEST_TOTALS:-}" ]; then echo "0 0 $n" >>"$TUNE_TEST_TOTALS"; else echo "0 passed, 0 failed, $n skipped"; fi
    exit 0
fi
TUNE_PYTHON=$venv/bin/python sh tests/run.sh tests/peers/*_peer.py
