#!/bin/sh
# sweep_ssh.sh - sweep --launcher 'ssh HOST', with an sshd of its own on loopback. Called by `make test-slurm`, as root. Other commands:
# tests/sweeps/test_launcher.sh.
. tests/tap.sh
sweep=$BUILD/sweep samples=$BUILD/samples
cd "$tmp" || exit 1
. "$here/tests/slurm/sweep_work.sh"
says() { grep -qE -e "$1" shown || { cat shown; false; }; }
launch() { s=$1 st=$2; shift 2; timeout 200 "$sweep" "$s" --experiments work.json --store "$st" --share-cores "$@" >shown 2>&1; }

if unshare -m true 2>/dev/null; then
    mkdir shared
    refused "a host that does not see the store" 3 "no host is left that can measure" eval 'space five.yaml 400 404 0.1; "$sweep" five.yaml --experiments work.json --store shared/st --launcher "unshare -m sh -c \"mount -t tmpfs none $tmp/shared; exec \\\$0 \\\$@\"" >shown'
fi

# ---- ssh ----
server=$(command -v sshd || ls /usr/sbin/sshd 2>/dev/null)
if [ -z "$server" ] || ! command -v ssh >/dev/null 2>&1; then
    skip "sweeps over ssh" "no sshd or no ssh (tools/setup.sh slurm)"
    finish
fi
mkdir -p /run/sshd keys && chmod 700 keys
ssh-keygen -q -t ed25519 -N '' -f keys/host && ssh-keygen -q -t ed25519 -N '' -f keys/user && cp keys/user.pub keys/authorized
port=$((10000 + $$ % 10000))
cat >sshd.conf <<E2
Port $port
ListenAddress 127.0.0.1
HostKey $tmp/keys/host
AuthorizedKeysFile $tmp/keys/authorized
PidFile $tmp/sshd.pid
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
E2
"$server" -f "$tmp/sshd.conf" -E "$tmp/sshd.log"
trap 'kill "$(cat "$tmp/sshd.pid")" 2>/dev/null; rm -rf "$tmp"' EXIT
cat >ssh.conf <<E2
Host near other
  HostName 127.0.0.1
  Port $port
  IdentityFile $tmp/keys/user
  StrictHostKeyChecking no
  UserKnownHostsFile $tmp/keys/known
  LogLevel ERROR
E2
await 0 ssh -F ssh.conf near true || { is "sshd answers" sh -c 'cat sshd.log; false'; finish; }
space far.yaml 1000 1040 0.2
is "ssh to two hosts" eval 'launch far.yaml far --launcher "ssh -F $tmp/ssh.conf near" --launcher "ssh -F $tmp/ssh.conf other" && says "^# finished +40 valid" && whole far 1000 1040 && [ "$(ls far/*.h5 | wc -l)" = 2 ]'
is "a host that ssh cannot reach: the other one measures" eval 'space gone.yaml 1100 1110 0.1; launch gone.yaml far --launcher "ssh -F $tmp/ssh.conf -p 1 near" --launcher "ssh -F $tmp/ssh.conf near" && says "^# ssh .* exit code 255: .*refused" && says "^# finished +10 valid"'
is "... no other one: it is tried three times" eval 'space none.yaml 1200 1210 0.1; ! launch none.yaml far --launcher "ssh -F $tmp/ssh.conf -p 1 near" && [ "$(grep -c "^# ssh .* exit code 255: .*refused" shown)" = 3 ] && says "not used any more" && says "^sweep: no host is left that can measure; 10 points are left"'
space killed.yaml 2000 2040 0.3
"$sweep" killed.yaml --experiments work.json --store kil --share-cores --name killed --launcher "ssh -F $tmp/ssh.conf near" >shown 2>&1 &
pid=$!
await $pid eval '[ "$(ls kil/claims/killed | wc -l)" -ge 8 ]'
kill -9 $pid
wait $pid 2>/dev/null
is "kill -9 of the sweep: --resume goes on over ssh" eval 'timeout 200 "$sweep" --resume killed --experiments work.json --store kil --share-cores >shown 2>&1; says "^# finished +40 valid" && whole kil 2000 2040'
finish
