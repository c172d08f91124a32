#!/bin/sh
# test_cpu_share.sh - rows say how much of its cores a measurement had, and whether its speed became stable. Disturbed ones are
# measured again.
. tests/tap.sh
if sanitized; then
    skip "shares of cores" "programs that only compute are measured; other tests of sweeps run the same code with sanitizers"
    finish
fi
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples
mkdir exp
# It takes some tenths of a second of processor time, and logs each run.
cat >exp/burn.sh <<'E2'
#!/bin/sh
echo >>"$(dirname "$0")/log"
exec awk 'BEGIN { while (i < 5e7) i++; print "{\"speed\": 1}" >(ENVIRON["TUNE_OUTPUT"] "/report.json") }'
E2
chmod +x exp/burn.sh
echo '{"identifier": "burn", "program": "./burn.sh", "output": null, "inputs": [
 {"identifier": "n", "required": true, "domain": {"domainRange": [1, 1000], "interval": 1}},
 {"identifier": "until_stable", "default": 0, "domain": {"domainRange": [0, 101]}},
 {"identifier": "report", "default": "", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}],
 "targets": [{"identifier": "speed", "unit": "1/s"}]}' >exp/burn.json
printf 'entitySpace: [{identifier: n, propertyDomain: {values: [1]}}]\nexperiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: burn}]\n' >s.yaml
echo '{"store": "st", "experiments": "exp"}' >tune.json
row() { "$samples" show burn --sort started --columns "$1" --output-format csv --store "${2:-st}" | tail -n 1; }

# ---- the share ----
# Each core gets two busy processes, for as long as this test's first part runs. Each has a session of its own, as a
# measurement has: Linux may share the cores between sessions first (autogroups).
busy() { for i in $(seq $(($(nproc) * 2))); do setsid sh -c 'while :; do :; done' & pids="$pids $!"; done; }
busy
is "beside two busy processes a core: it is measured again" eval '"$sweep" s.yaml >out && grep -qE "^ +0/1 +again +[0-9.]+ s .*disturbed: the program got only [0-9]+ % of the time of its cores$" out && [ "$(wc -l <exp/log)" = 2 ]'
is "... and marked" eval 'grep -qE "^ +1/1 +measured .*disturbed: the program got only [0-9]+ % of the time of its cores$" out && grep -q "^# finished *1 valid, 0 invalid, 0 failed" out'
is "... in the row, with the share" eval 'row core_share,status,reason | awk -F, "{ exit !(\$1 > 0 && \$1 < 0.9 && \$2 == \"valid\" && \$3 ~ /^disturbed: the program got only/) }"'
is "... the first try is failed, for none to use" eval '[ "$("$samples" show burn --columns status --output-format csv | sed 1d | sort | tr "\n" " ")" = "failed valid " ]'
is "... --where leaves it out" eval '[ "$("$samples" show s.yaml --where "core_share >= 0.9" --output-format csv | wc -l)" = 1 ] && [ "$("$samples" show s.yaml --where "core_share < 0.9" --output-format csv | wc -l)" = 2 ]'
is "--retries 0: not again, and marked" eval 'rm exp/log; "$sweep" s.yaml --remeasure --retries 0 >out && [ "$(wc -l <exp/log)" = 1 ] && grep -q "measured .*disturbed" out'
is "--retries 2: twice" eval 'rm exp/log; "$sweep" s.yaml --remeasure --retries 2 >out && [ "$(wc -l <exp/log)" = 3 ]'
is "--share-cores wants it so: once" eval 'rm exp/log; "$sweep" s.yaml --remeasure --share-cores >out && [ "$(wc -l <exp/log)" = 1 ]'
kill $pids
wait 2>/dev/null
sed s/burn/many/g exp/burn.json >exp/many.json
sed s/burn/many/ s.yaml >m.yaml
printf '#!/bin/sh\nfor i in $(seq $(($(nproc) * 4))); do awk "BEGIN { while (i < 4e6) i++ }" & done\nwait\necho "{\\"speed\\": 1}" >"$TUNE_OUTPUT/report.json"\n' >exp/many.sh
chmod +x exp/many.sh
many() { "$sweep" m.yaml --remeasure --retries 0 >out; "$samples" show many --sort started --columns core_share --output-format csv | tail -n 1; }
# Only a try counts in which other processes and the hypervisor took less than a twentieth of the processors' busy time. Both
# counts are in ticks of 0.01 s.
busy_ticks() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 + $9 }' /proc/stat; }
own_ticks() { # of this shell's children that ended
    times >ticks
    awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += 6000 * t[1] + 100 * t[2] }; print int(sum) }' ticks
}
others=1 tries=0
while [ $tries -lt 8 ] && awk "BEGIN { exit !($others > 0.05) }"; do
    tries=$((tries + 1)) all=$(busy_ticks)
    own_ticks >own
    before=$(cat own)
    many >share
    own_ticks >own
    all=$(($(busy_ticks) - all))
    others=$(awk "BEGIN { print 1 - ($(cat own) - $before) / $all }")
done
if awk "BEGIN { exit !($others <= 0.05) }"; then
    is "more threads than cores are no loss: $(cat share), others $others" awk "BEGIN { exit !($(cat share) > 0.9) }"
else
    skip "more threads than cores are no loss" "other processes are on this machine's cores"
fi
is "too short to tell: no share" eval 'printf "#!/bin/sh\necho \"{\\\"speed\\\": 1}\" >\$TUNE_OUTPUT/report.json\n" >exp/many.sh; "$sweep" m.yaml >out; [ "$("$samples" show many --sort started --columns core_share,speed --output-format csv | tail -n 1)" = ,1.0 ]'

# ---- stable ----
# stable SAYS REASON REPORT OPTION... - a row of that report
stable() {
    says=$1 reason=$2 report=$3
    shift 3
    rm -rf other
    "$sweep" s.yaml --store other --retries 0 --set "report=$report" "$@" >out 2>&1 || { cat out; return 1; }
    row stable,reason other | sed 's/disturbed: the program got only [0-9]* % of the time of its cores\(; \)*//' >got
    [ "$(cat got)" = "$says,$reason" ] || { cat got; return 1; }
}
cat >exp/burn.sh <<'E2'
#!/bin/sh
echo "{\"speed\": 1$(cat "$(dirname "$0")/more.$TUNE_INPUT_REPORT")}" >"$TUNE_OUTPUT/report.json"
E2
more() { echo ", $2" >exp/more.$1; }
more few '"training_steps": 7'
more drift '"training_steps": 70'
more wide '"training_steps": 70, "tokens_per_second_stable": 100, "tokens_per_second_stable_half_width": 6'
more good '"training_steps": 70, "tokens_per_second_stable": 100, "tokens_per_second_stable_half_width": 4'
: >exp/more.none
is "few steps are marked" stable 0 "too few steps for a stable speed: 7" few
is "so is a speed that never settled" stable 0 "the speed was not stable" drift
is "... or only roughly" stable 0 "the speed was not stable" wide
is "within 5 % it is stable" stable 1 "" good
is "... --until-stable says within what" stable 1 "" wide --until-stable 7
is "... also less" stable 0 "the speed was not stable" good --until-stable 3
is "a program that says nothing of it" stable "" "" none
finish
