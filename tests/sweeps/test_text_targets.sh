#!/bin/sh
# test_text_targets.sh - targets that are texts: from the report into the store and out of it; lists, objects and texts that are no
# targets are refused by name.
. tests/tap.sh
cd "$tmp" || exit 1
samples=$BUILD/samples sweep=$BUILD/sweep
says() { text=$1; shift; "$@" >shown 2>&1 && grep -qE -e "$text" shown || { cat shown; false; }; }
cat >work.sh <<'E2'
#!/bin/sh
case $TUNE_INPUT_A in
1) kernel='"gemm \"8x8\", wide"' ;;
2) kernel='"größe 七"' ;;
3) kernel=null ;;
4) kernel='[1, 2, 3]' ;;
5) kernel='{"a": 1}' ;;
6) kernel=7 ;;
7) kernel="\"$(head -c 5000 /dev/zero | tr '\0' x)\"" ;;
8) kernel='"late"' speed='"fast"' ;;
9) kernel='"late"' speed='[1, "two"]' ;;
10) kernel=NaN ;;
esac
echo "{\"speed\": ${speed:-$TUNE_INPUT_A.5}, \"kernel\": $kernel, \"nonce\": \"$TUNE_NONCE\"}" >"$TUNE_OUTPUT/report.json"
E2
cat >turns.sh <<'E2'
#!/bin/sh
echo . >>"$TUNE_INPUT_LOG"
echo "{\"first\": \"run $(wc -l <"$TUNE_INPUT_LOG")\", \"last\": \"run $(wc -l <"$TUNE_INPUT_LOG")\"}" >"$TUNE_OUTPUT/report.json"
E2
chmod +x work.sh turns.sh
cat >work.json <<'E2'
{"identifier": "work", "actuator": "toys", "program": "./work.sh", "output": null,
 "inputs": [{"identifier": "a", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}}],
 "targets": [{"identifier": "kernel", "type": "text", "optional": true, "description": "the kernel that was chosen"}, {"identifier": "speed", "unit": "1/s"}]}
E2
cat >turns.json <<E2
{"identifier": "turns", "actuator": "toys", "program": "./turns.sh", "output": null, "runs": 3,
 "inputs": [{"identifier": "a", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "log", "default": "$tmp/log", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}],
 "targets": [{"identifier": "first", "type": "text"}, {"identifier": "last", "type": "text", "reduce": "last"}]}
E2
space() { printf 'entitySpace: [{identifier: a, propertyDomain: {values: %s}}]\nexperiments: [{actuatorIdentifier: toys, experimentIdentifier: %s}]\n' "$2" "$1"; }
space work '[1, 2, 3]' >good.yaml && space work '[4, 5, 6, 7, 8, 9, 10]' >bad.yaml && space turns '[1]' >turns.yaml
own='--experiments work.json,turns.json --store st'
shown() { "$samples" show "$@" $own --include matching --output-format csv | tr -d '\r'; }

is "texts are measured" says '3 valid, 0 invalid, 0 failed' "$sweep" good.yaml $own
is "show prints them" eval 'shown good.yaml >csv && sed "s/.*toys.work,//" csv >short && printf "a,kernel,speed\n1,\"gemm \"\"8x8\"\", wide\",1.5\n2,größe 七,2.5\n3,,3.5\n" >wanted && sed "1s/.*experiment_id,//" short | diff wanted -'
is "... to people, too" says '^ *2 .*größe 七 .*2.5' "$samples" show good.yaml $own
is "show of an entity says that it lists no texts" says "^samples: 1 result is a text, which is not listed here: show of the experiment lists texts$" "$samples" show a.1 $own
is "rows has a column of texts" eval '"$samples" show work $own --output-format json >json && grep -q "\"kernel\": *\"gemm .\"8x8.\", wide\"" json && grep -q "\"kernel\": *null" json'
is "--where compares texts" eval 'shown good.yaml --where "kernel == \"größe 七\"" >csv && [ "$(sed 1d csv | wc -l)" = 1 ]'
is "the store is sound, and known results are used" eval 'says "no problems found" "$samples" check --store st && says "0 valid.* 3 known" "$sweep" good.yaml $own'
is "the first and the last of several runs" eval '"$sweep" turns.yaml $own >run.said && shown turns.yaml >csv && grep -q "run 1,run 3$" csv'
is "what is no target is refused by name" eval '! "$sweep" bad.yaml $own >bad.said 2>&1; cat bad.said; grep -q "target kernel is a list of 3 numbers, expected a number or a text" bad.said && grep -q "target kernel is an object of 1 member, expected" bad.said &&
    grep -q "target speed is a list of 2 values, expected" bad.said'
is "... and what its experiment wants otherwise" eval 'grep -q "target kernel is a number (7), but the .type. of this target in its experiment is text" bad.said && grep -q "target speed is a text (fast), but the .type. of this target in its experiment is number" bad.said'
is "... and a text that is too long" grep -q "the text of target kernel has 5000 bytes, but a target can have at most 4096" bad.said
is "NaN is absent, which is said; the row stays" eval 'grep -q "measured.* a 10 .*not stored, because the report has NaN or an infinity there: kernel" bad.said && shown bad.yaml >csv && grep -q ",10,10.5$" csv'
for command in "best --maximize" "plot --property" "effect --property"; do
    refused "$command refuses a text by name" 2 "kernel is a text; ${command%% *} works on numbers" "$samples" ${command%% *} good.yaml $own ${command#* } kernel
done
refused "compare, too" 2 "compare works on numbers, and kernel is a text" "$samples" compare st st --property kernel
refused "and sweep's halving" 2 "property kernel of experiment work is a text" "$sweep" good.yaml $own --order halving --maximize kernel --budget a=1..4
printf 'a,kernel,speed\n50,x,1\n' >k.csv
refused "and an import" 2 "target kernel of experiment work is a text, but import reads only numbers" "$samples" import csv k.csv $own --experiment work --inputs a
finish
