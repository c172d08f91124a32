#!/bin/sh
# test_trust.sh - stores of other people: what they record is run only after this user gave it. And where values of --env lie.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples
cat >work.sh <<'E2'
#!/bin/sh
echo "$TUNE_INPUT_A $MY_TOKEN" >>"${LOG:-log}"
echo "{\"speed\": $TUNE_INPUT_A.5}" >"$TUNE_OUTPUT/report.json"
E2
chmod +x work.sh
cat >work.json <<'E2'
{"identifier": "work", "actuator": "toys", "program": "./work.sh", "output": null,
 "inputs": [{"identifier": "a", "required": true, "domain": {"domainRange": [0, 100], "interval": 1},
  "role": "data", "format": "{}", "make": ["sh", "-c", "echo rows >{}"]}],
 "targets": [{"identifier": "speed", "unit": "1/s"}]}
E2
sed 's/, *"role.*]}\]/}]/; /"role"/d; s/"interval": 1},$/"interval": 1}}],/' work.json >plain.json
printf 'entitySpace:\n  - {identifier: a, propertyDomain: {values: [1, 2, 3]}}\nexperiments: [{actuatorIdentifier: toys, experimentIdentifier: work}]\n' >s.yaml
stranger() { XDG_CONFIG_HOME="$tmp/theirs" "$@"; }
measure() { "$sweep" "$@" --share-cores >shown 2>&1; }
valid() { [ "$(grep -cE "^ +[0-9]+/[0-9]+ +measured .* speed" shown)" = "$1" ] || { cat shown; false; }; }
lose_rows() { rm -f "$1"/*.h5; } # then its operation has points to measure

# ---- programs ----
is "a stranger's store" eval 'stranger measure s.yaml --experiments plain.json --store theirs-st --name op && valid 3'
copy() { rm -rf st PWNED && cp -r theirs-st st && lose_rows st; }
hostile() { sed -i "s|\"./work.sh\"|\"$tmp/touch.sh\"|" st/experiments/toys.work.json; }
printf '#!/bin/sh\ntouch %s/PWNED\n' "$tmp" >touch.sh && chmod +x touch.sh
copy && hostile
refused "--resume runs no program that it records" 2 "experiment work in this store has the program $tmp/touch.sh" "$sweep" --resume op --store st
refused "... nor a space that names its experiment" 2 "you never gave this experiment on this machine; to allow this, give its file by --experiments, or --trust-store" "$sweep" s.yaml --store st
is "... a dry run may look" eval 'measure s.yaml --store st --dry-run'
is "nothing ran" [ ! -e PWNED ]
is "the experiment's own file is given: it runs" eval 'copy && measure --resume op --store st --experiments plain.json && valid 3'
is "... from then on it is known" eval 'lose_rows st && measure --resume op --store st && valid 3'
is "... and the stranger goes on, too" eval 'lose_rows st && stranger measure --resume op --store st && valid 3'
refused "... but not with another text" 2 "you never gave this experiment" eval 'lose_rows st; hostile; "$sweep" --resume op --store st'
is "--trust-store runs it" eval 'copy && measure --resume op --store st --trust-store && valid 3 && lose_rows st && measure --resume op --store st && valid 3'
is "a mark of another file is none" eval 'printf "%s\n" "#0123456789abcdef" >st/experiments/toys.work.json.marks && lose_rows st && ! measure --resume op --store st'
is "without a folder for the key: each time anew" eval 'copy && env -u XDG_CONFIG_HOME -u HOME "$sweep" --resume op --store st --experiments plain.json --share-cores >shown && valid 3 && lose_rows st && ! env -u XDG_CONFIG_HOME -u HOME "$sweep" --resume op --store st >shown 2>&1'

# ---- launchers ----
is "a stranger's operation with a launcher" eval 'stranger measure s.yaml --experiments "$tmp/plain.json" --store "$tmp/theirs-st" --name far --remeasure --launcher env && valid 3'
copy
sed -i 's|"launcher":\([^"]*\)"env"|"launcher":\1"touch PWNED; env"|' st/operations/far.json
refused "--resume runs no launcher that it records" 2 "operation far was not begun by you on this machine, but its record has --launcher 'touch PWNED; env', which would be run" "$sweep" --resume far --store "$tmp/st" --experiments "$tmp/plain.json"
is "nothing ran" [ ! -e PWNED ]
is "given again it runs" eval 'measure --resume far --store "$tmp/st" --experiments "$tmp/plain.json" --launcher env && valid 3'
is "... and its own is gone on with without a word" eval 'lose_rows st && measure --resume far --store "$tmp/st" && valid 3'
sed -i 's|"launcher":\([^"]*\)"env"|"launcher":\1"env", "slurm": "--wrap=x"|' st/operations/far.json
refused "options of Slurm are asked for, too" 2 "its record has --launcher 'env' --slurm '--wrap=x'" "$sweep" --resume far --store "$tmp/st"

# ---- merge ----
cp work.json full.json && stranger measure s.yaml --experiments work.json --store full --name op
is "merge says which programs it leaves out" eval '"$samples" merge full --store mine >shown && grep -q "^# without its program: toys.work.json (./work.sh)" shown && grep -q -- --with-programs shown && [ "$(ls mine/experiments)" = toys.work.json ] && ! grep -q "work.sh\|echo" mine/experiments/toys.work.json'
id=$(ls full/spaces | sed 's/\..*//')
is "... the rest of the experiment is there" eval '"$samples" show "$id" --store full --output-format csv >a && "$samples" show "$id" --store mine --include matching --output-format csv >b && [ "$(wc -l <a)" = 4 ] && cmp a b'
is "... and it is not run" eval 'measure s.yaml --store mine --remeasure && grep -q "toys.work, without a program on this machine" shown && valid 0'
is "of YAML, too" eval 'printf "identifier: yam\nactuator: toys\nprogram: ./work.sh\noutput: null\ninputs:\n- {identifier: a, required: true, domain: {domainRange: [0, 100], interval: 1}}\ntargets: [{identifier: speed, unit: \"1/s: \\\\\"x\\\\\"\"}]\n" >yam.yaml && sed s,work,yam, s.yaml >y.yaml && stranger measure y.yaml --experiments yam.yaml --store y && valid 3 && "$samples" merge y --store ym >shown && grep -q "toys.yam.yaml (./work.sh)" shown && ! grep -q work.sh ym/experiments/* && "$samples" show "$(ls y/spaces | sed "s/\..*//")" --store ym --include matching --output-format csv >b && [ "$(wc -l <b)" = 4 ]'
is "--with-programs copies them" eval '"$samples" merge full --store with --with-programs >shown && ! grep -q "without its program" shown && cmp full/experiments/toys.work.json with/experiments/toys.work.json && cmp full/experiments/toys.work.json.folder with/experiments/toys.work.json.folder'
refused "... and they are asked for all the same" 2 "you never gave this experiment" "$sweep" s.yaml --store with --remeasure

# ---- values of --env ----
secret() { grep -rl "$1" "$2" 2>/dev/null | while read -r f; do [ "$(stat -c %a "$f")" = 600 ] || echo "$f"; done; }
cat >work.sh <<'E2'
#!/bin/sh
echo "$TUNE_INPUT_A $MY_TOKEN" >>seen
until [ -e go ]; do sleep 0.1; done
echo "{\"speed\": 1.5}" >"$TUNE_OUTPUT/report.json"
E2
sed -i "s|>>seen|>>$tmp/seen|; s|-e go|-e $tmp/go|" work.sh
(umask 022 && exec "$sweep" s.yaml --experiments "$tmp/plain.json" --store "$tmp/env-st" --share-cores --launcher env --env "MY_TOKEN=it's hf_SECRET,PLAIN=2" --env-secrets >shown 2>&1) &
run=$!
is "a value reaches the program through a launcher" await $run grep -q "^1 it's hf_SECRET$" seen
none "... and stands in no file that others can read" "$(secret hf_SECRET env-st)"
is "... the script has its name" grep -q -- "--env MY_TOKEN,PLAIN" env-st/launch/*/job.sh
touch go
is "all are measured" eval 'wait $run && valid 3'
none "... and nothing is left" "$(grep -rl hf_SECRET env-st; ls env-st/launch 2>/dev/null)"
refused "a name that no shell can set" 2 "must consist of letters, digits and _" "$sweep" s.yaml --experiments plain.json --store "$tmp/env-st" --launcher env --env "A-B=2" --remeasure
finish
