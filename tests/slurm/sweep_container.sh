#!/bin/sh
# sweep_container.sh - sweep --launcher with a command that runs in a container. `runc exec NAME` is what `docker exec NAME` calls: the
# container has processes and a file tree of its own. Called by `make test-slurm`, as root.
. tests/tap.sh
sweep=$BUILD/sweep samples=$BUILD/samples
cd "$tmp" || exit 1
. "$here/tests/slurm/sweep_work.sh"
says() { grep -qE -e "$1" shown || { cat shown; false; }; }

# The container's file tree: the system's programs, this tree and this test's folder, each under its own path.
rootfs=$tmp/rootfs
mkdir -p "$rootfs/usr" "$rootfs/etc" "$rootfs/proc" "$rootfs/sys" "$rootfs/dev" "$rootfs$here" "$rootfs$BUILD" "$rootfs$tmp"
for link in bin sbin lib lib64; do [ ! -L /$link ] || ln -s "$(readlink /$link)" "$rootfs/$link"; done
bind() { printf '{"destination": "%s", "type": "bind", "source": "%s", "options": ["bind", "%s"]},\n' "$1" "$1" "$2"; }
cat >config.json <<E2
{"ociVersion": "1.0.2", "root": {"path": "$rootfs"},
 "process": {"args": ["sleep", "600"], "cwd": "/", "user": {"uid": 0, "gid": 0}, "env": ["PATH=$PATH"]},
 "mounts": [$(bind /usr ro) $(bind /etc ro) $(bind /sys ro) $(bind "$here" rw) $(bind "$BUILD" rw) $(bind "$tmp" rw)
  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}, {"destination": "/proc", "type": "proc", "source": "proc"}],
 "linux": {"namespaces": [{"type": "mount"}, {"type": "pid"}]}}
E2
box=box$$
if [ "$(id -u)" != 0 ] || ! command -v runc >/dev/null 2>&1; then
    skip "sweeps in a container" "no runc (tools/setup.sh slurm), or not root"
    finish
elif ! runc --root "$tmp/runc" run -d --no-pivot --bundle "$tmp" $box </dev/null >started 2>&1; then
    skip "sweeps in a container" "runc cannot start one here: $(tail -n 1 started)"
    finish
fi
trap 'runc --root "$tmp/runc" delete -f $box; rm -rf "$tmp"' EXIT
inside="runc --root $tmp/runc exec $box"
# launch OPERATION SPACE STORE LAUNCHER...
launch() {
    op=$1 s=$2 st=$3
    shift 3
    for l in "$@"; do set -- "$@" --launcher "$l"; shift; done
    timeout 200 "$sweep" "$s" --experiments work.json --store "$st" --share-cores --name "$op" "$@" >shown 2>&1
}

is "the container has other process numbers" eval '[ "$($inside sh -c "echo \$\$")" -lt 100 ] && [ "$($inside readlink /proc/self/ns/pid)" != "$(readlink /proc/self/ns/pid)" ]'
space s.yaml 20 40 0.5
is "a container and this machine: each measures a part" eval 'launch both s.yaml st "$inside" env && says "^# finished +20 valid" && whole st 20 40 && [ "$(ls st/*.h5 | wc -l)" = 2 ]'
is "... each program ran once" eval '[ "$(wc -l <log)" = 20 ] && [ "$(sort -n log | uniq -d)" = "" ]'
space k.yaml 40 44 2
is "the sweep in the container is killed: it is started again, and nothing is lost" eval 'launch killed k.yaml st2 "$inside" & job=$!
    await $job $inside sh -c "grep -lx sweep /proc/[0-9]*/comm"
    $inside sh -c "for p in /proc/[0-9]*; do [ \"\$(cat \$p/comm 2>/dev/null)\" != sweep ] || kill -9 \${p#/proc/}; done"
    wait $job && says "exit code 137" && says "^# finished +4 valid" && whole st2 40 44'
finish
