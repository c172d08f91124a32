#!/bin/sh
# test_launcher.sh - sweep --launcher with commands of this machine: what each measures, what is passed on to them, which are tried
# again, and how they end. Over ssh: tests/slurm/sweep_ssh.sh. Values of --env: test_trust.sh.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples
. "$here/tests/slurm/sweep_work.sh"
says() { grep -qE -e "$1" shown || { cat shown; false; }; }
launch() { s=$1 st=$2; shift 2; "$sweep" "$s" --experiments work.json --store "$st" --share-cores "$@" >shown 2>&1; }

# ---- which commands are tried again ----
# often.sh fails three times, each time a little later; a fourth time it would measure. It waits beside the other tests.
printf '#!/bin/sh\necho >>often\n[ "$(wc -l <often)" -gt 3 ] || exit 5\nexec "$@"\n' >often.sh
# once.sh NAME... - the first time, the job's script, in which the path NAME leads nowhere; after that it would measure.
cat >once.sh <<'E2'
#!/bin/sh
name=$1
shift
[ ! -e "ran.$name" ] || exec "$@"
touch "ran.$name"
sed "s|$name=.|&/nowhere|" "$2" | sh -s "$3"
E2
chmod +x often.sh once.sh
space often.yaml 10 12
"$sweep" often.yaml --experiments work.json --store often.st --share-cores --launcher ./often.sh >often.out 2>&1 &
often=$!
final() { "$sweep" final.yaml --experiments work.json --store final --share-cores --launcher "./once.sh $1"; } # NAME
space final.yaml 20 22
refused "a host that does not see the store" 3 "no host is left that can measure; 2 points are left" eval "final store >shown"
is "... is not tried again" says "^# ./once.sh store: exit code 97: this host does not see the store $tmp/final; it is not used any more"
refused "a host that does not see the program" 3 "no host is left that can measure; 2 points are left" eval "final sweep >shown"
is "... is not tried again" says "^# ./once.sh sweep: exit code 98: this host does not see the program or the folder; .*it is not used any more"

# ---- who measures ----
space s.yaml 20 50 0.2
is "two commands: each measures a part" eval 'launch s.yaml st --launcher env --launcher "nice -n 1" && says "^# finished +30 valid" && whole st 20 50 && [ "$(ls st/*.h5 | wc -l)" = 2 ]'
is "... each program ran once" eval '[ "$(sort -n log | uniq -d)" = "" ] && [ ! -e st/launch ]'
is "the same as one list" eval 'space two.yaml 100 110 0.1 && launch two.yaml st --launcher "env,nice -n 1" && says "^# finished +10 valid"'
is "a command that does not start: said, and the other one measures" eval 'space three.yaml 200 210 0.1 && launch three.yaml st --launcher "/nowhere/run" --launcher env && says "^# /nowhere/run: exit code 127: .*it is not used any more" && says "^# finished +10 valid"'
refused "none starts" 3 "no host is left that can measure; 10 points are left" eval 'space four.yaml 300 310 0.1; "$sweep" four.yaml --experiments work.json --store st --share-cores --launcher /nowhere/run >/dev/null'
# Each of the hosts reads the space, finds no GPU, and ends well without a row.
sed 's/"inputs": \[/&{"identifier": "number_gpus", "default": 0, "domain": {"domainRange": [0, 9], "interval": 1}}, /' work.json >gpus.json
printf 'entitySpace: [{identifier: a, propertyDomain: {values: [700]}}, {identifier: number_gpus, propertyDomain: {values: [8]}}]\nexperiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]\n' >eight.yaml
refused "points that no host can measure end the sweep" 3 "no host is left that can measure; 1 point is left" eval '"$sweep" eight.yaml --experiments gpus.json --store eight --share-cores --launcher env --gpus "" >shown'
is "... it says which host ends without results" says "^# env: ended 5 times without a result, though points are left; it is not used any more: see .*/host-1.log"
refused "slurm is no command" 2 "slurm cannot be combined" "$sweep" s.yaml --experiments work.json --store st --launcher slurm,env
mkdir "a b"
refused "a store whose path has a space" 2 "has no spaces" "$sweep" s.yaml --experiments work.json --store "a b/st" --launcher env
refused "--stop-when" 2 "--stop-when with --launcher needs --order model" "$sweep" s.yaml --experiments work.json --store st --launcher env --dry-run --stop-when t:5% --maximize t --repeat 4

# ---- what is passed on ----
space long.yaml 400 402 60
is "--timeout" eval '! launch long.yaml timeout --launcher env --timeout 0.1 && says "^# finished +0 valid, 0 invalid, 2 failed" && rows timeout reason | grep -q "after the time limit of 0.1 s"'
is "--share-cores and --in-flight" eval 'at_once=$(($(nproc) + 1)) && space short.yaml 500 502 && launch short.yaml shared --launcher env --in-flight $at_once && says "^# finished +2 valid" && rows shared host_class | grep -q ", $at_once at a time"'

# ---- rows ----
# The first run fails. Each repeat has its own row.
printf '#!/bin/sh\necho >>turns\n[ "$(wc -l <turns)" != 1 ] || exit 7\necho "{\\"t\\": $(wc -l <turns)}" >"$TUNE_OUTPUT/report.json"\n' >work.sh
sed -i "s|turns|$tmp/turns|g" work.sh
is "--repeat: one of three fails" eval 'space three.yaml 600 601 && launch three.yaml repeat --name three --launcher env --repeat 3 && says "^# finished +2 valid, 0 invalid, 1 failed"'
is "... it is known later, too" eval '"$sweep" --resume three --experiments work.json --store repeat --share-cores >shown 2>&1 && says "^# finished +2 valid, 0 invalid, 1 failed"'

# ---- the time limit ----
printf '#!/bin/sh\nsleep 60\necho "{\\"t\\": 1}" >"$TUNE_OUTPUT/report.json"\n' >work.sh
is "--time-limit" eval 'space end.yaml 700 701 && launch end.yaml end --launcher env --time-limit 0.5 && says "^# the time limit is reached: the jobs are ended$" && says "^# stopped +0 valid" && [ -z "$(rows end a)" ]'

wait $often
code=$?
cp often.out shown
is "a command that fails is started three times" eval '[ $code = 3 ] && [ "$(wc -l <often)" = 3 ] && [ "$(grep -c "^# ./often.sh: exit code 5" shown)" = 3 ] && says "not used any more" && says "^sweep: no host is left that can measure; 2 points are left"'
finish
