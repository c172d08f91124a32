# venv.sh - a Python environment outside this tree. Sourced.
# Debian keeps the module venv needs in a package of its own.
have_venv() { python3 -c 'import ensurepip, venv' >/dev/null 2>&1; }
# make_venv VENV LOG - it is there. Else 1, and $why says the reason. LOG takes what the commands print.
make_venv() {
    command -v python3 >/dev/null 2>&1 || { why="python3 is not installed"; return 1; }
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { why="python3 is older than 3.10"; return 1; }
    [ ! -x "$1/bin/python" ] || return 0
    if ! have_venv && command -v apt-get >/dev/null 2>&1; then
        sudo=
        [ "$(id -u)" = 0 ] || sudo="sudo -n"
        { $sudo apt-get update -q && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends python3-venv; } >"$2" 2>&1
    fi
    have_venv || { why="python3 has no venv module (Debian: apt-get install python3-venv)"; return 1; }
    mkdir -p "$(dirname "$1")" && python3 -m venv "$1" >"$2" 2>&1 || { why="cannot make $1: $(tail -n 1 "$2")"; return 1; }
}
# make_venv_beside VENV BASE LOG - the same, with the packages of the environment BASE in sight. What is installed in VENV comes before them.
make_venv_beside() {
    make_venv "$1" "$3" || return 1
    for site in "$2"/lib/python3*/site-packages; do
        [ -d "$site" ] || { why="$2 has no packages"; return 1; }
        for own in "$1"/lib/python3*/site-packages; do echo "$site" >"$own/beside.pth"; done
    done
}
