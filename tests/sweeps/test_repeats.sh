#!/bin/sh
# test_repeats.sh - what repeats say: compare --regression, sweep --stop-when.
. tests/tap.sh
cd "$tmp" || exit 1
samples=$BUILD/samples

# ---- compare --regression ----
echo '{"identifier": "work", "actuator": "custom_experiments", "program": "./none",
 "inputs": [{"identifier": "size", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}}],
 "targets": [{"identifier": "speed", "unit": "tokens/s", "optional": true}, {"identifier": "time", "unit": "s", "optional": true},
             {"identifier": "score", "unit": "", "optional": true}]}' >work.json
# side STORE <ROWS - a store with these rows "size,speed,time,score"
side() { rm -rf "$1"; { echo size,speed,time,score; cat; } >"$1.csv"; "$samples" import csv "$1.csv" --experiment work --experiments work.json --inputs size --property speed,time,score --store "$1"; }
# told CODE TEXT B FLAG... - compare a with B ends so, and prints the row
told() {
    wanted=$1 text=$2 b=$3
    shift 3
    "$samples" compare a "$b" --output-format csv "$@" >shown 2>&1
    got=$?
    cat shown
    [ $got = "$wanted" ] && grep -qE "^work,$text\$" shown
}
is "a store to compare with" side a <<'E2'
1,"[100, 101, 99, 100]","[10, 10.1, 9.9, 10]","[5, 5, 5, 5]"
2,7,7,
E2
is "one that is 3 % slower" side slower <<'E2'
1,"[97, 98, 96.5, 96.6]","[10.3, 10.4, 10.2, 10.3]","[6, 6, 6, 6]"
E2
is "one that is the same" eval 'sed "1d; 3d" a.csv | side same'
is "worse by more than 1 %: exit code 1" told 1 "size.1,speed,100.0,97.02[0-9]*,0.970[0-9]*,4,0.99[0-9]*,yes," slower --regression 1% --maximize speed
is "... not by more than 5 %: 0" told 0 "size.1,speed,100.0,97.02[0-9]*,0.970[0-9]*,4,0.000[0-9]*,no," slower --regression 5 --maximize speed
is "... 3 % cannot be told yet: 4" told 4 "size.1,speed,.*,cannot tell yet,[0-9]+" slower --regression 3% --maximize speed
is "... and people read it" eval '"$samples" compare a slower --regression 3% --maximize speed >shown; [ $? = 4 ] && grep -q "^# speed: is b worse by more than 3 %? entities: 0 yes, 0 no, 1 cannot tell yet$" shown && grep -q "^# more_pairs: estimated number of further repeats" shown'
is "a time is worse if it is longer" told 1 "size.1,time,10.0,10.3,1.0300[0-9]*,4,0.9999[0-9]*,yes," slower --regression 1% --minimize time
is "... its unit says so" told 1 "size.1,time,10.0,10.3,1.0300[0-9]*,4,0.9999[0-9]*,yes," slower --regression 1% --property time
is "... and that of a speed, the other way round" told 0 "size.1,speed,100.0,100.0,1.0,4,0.0,no," same --regression 1% --property speed
is "figures that do not vary tell at once" told 1 "size.1,score,5.0,6.0,1.2,4,1.0,yes," slower --regression 19% --minimize score
is "... at the limit itself it is no regression" told 0 "size.1,score,5.0,5.0,1.0,4,0.0,no," same --regression 0% --maximize score
is "the pair's ratio counts, not the side's spread" eval 'side drift <<E3 >/dev/null && told 0 "size.1,speed,.*,no," drift --regression 1% --maximize speed
1,"[100.1, 101.2, 99, 100.2]",,
E3'
is "two pairs are too few" eval 'printf "1,\"[90, 89.9]\",,\n" | side two >/dev/null && told 4 "size.1,speed,100.0,89.9[0-9]*,.*,2,0.98[0-9]*,cannot tell yet,1" two --regression 1% --maximize speed'
is "... one has no probability" eval 'printf "1,90,,\n" | side one >/dev/null && told 4 "size.1,speed,100.0,90.0,0.9[0-9]*,1,,cannot tell yet,2" one --regression 1% --maximize speed'
is "a no for one entity, and another that cannot be told: 4" eval 'side both <<E3 >/dev/null && told 4 "size.1,speed,.*,4,0.0[0-9e-]*,no," both --regression 1% --maximize speed
1,"[100, 101, 99, 100]",,
2,7,,
E3'
is "no entity in common: 4" eval 'printf "3,90,,\n" | side other >/dev/null && "$samples" compare a other --regression 1% --maximize speed >shown 2>&1; [ $? = 4 ] && grep -q "no entity was measured on both sides" shown'
rows() { for i in 1 2 3 4 5 6; do echo "$i,$(($1 * 10 + i)),,"; done; }
is "one result of each of six entities: none can be told" eval 'rows 100 | side a >/dev/null && rows 80 | side all >/dev/null && told 1 "size.6,speed,.*,1,,cannot tell yet,2" all --regression 5% --maximize speed'
is "... together they can" eval 'grep -q "^work,(all),speed,,,0.8[0-9]*,6,0.9999[0-9]*,yes,$" shown'
is "... a no for all is none for each: 4" told 4 "\(all\),speed,,,1.0,6,0.0,no," a --regression 5% --maximize speed
refused "a share that is none" 2 "--regression fast: expected a share" "$samples" compare a all --regression fast --maximize speed
refused "... 100 %" 2 "expected a share of 0 to below 100" "$samples" compare a all --regression 100% --maximize speed
refused "of what" 2 "--regression needs a property" "$samples" compare a all --regression 5%
refused "what is better must be known" 2 "unknown whether high or low values of score are better; give --maximize score or --minimize score" "$samples" compare a all --regression 5% --property score
refused "a property that is none" 2 "there is no property sped (the nearest is speed)" "$samples" compare a all --regression 5% --maximize sped
refused "--maximize alone" 2 "only with --regression" "$samples" compare a all --maximize speed

# ---- sweep --stop-when ----
# The speeds of size 1 and 2 are read from a file, one by one.
sweep=$BUILD/sweep
mkdir own && cat >own/turns.sh <<'E2'
#!/bin/sh
own=$(dirname "$0")
echo >>"$own/turn.$TUNE_INPUT_SIZE"
sed -n "$(wc -l <"$own/turn.$TUNE_INPUT_SIZE")p" "$own/speeds.$TUNE_INPUT_SIZE" |
    sed 's/\(.*\) \(.*\)/{"speed": \1, "other": \2}/' >"$TUNE_OUTPUT/report.json"
E2
chmod +x own/turns.sh
echo '{"identifier": "turns", "actuator": "custom_experiments", "program": "./turns.sh", "output": null,
 "inputs": [{"identifier": "size", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}}],
 "targets": [{"identifier": "speed", "unit": "tokens/s"}, {"identifier": "other", "unit": "tokens/s"}]}' >own/turns.json
printf 'entitySpace: [{identifier: size, propertyDomain: {values: [1, 2]}}]\nexperiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: turns}]\n' >turns.yaml
speeds() { n=$1; shift; rm -f own/turn.$n; for v in "$@"; do echo "$v"; done >own/speeds.$n; } # SIZE "SPEED OTHER"...
turn() { "$sweep" turns.yaml --experiments own/turns.json --store turns --remeasure "$@" >shown 2>&1; }
speeds 1 "100 50" "101 51" "99 49" "100 50" "100 50" "100 50"
speeds 2 "100 50" "101 50" "99 50" "100 50" "100 50" "100 50"
is "six repeats to compare with" turn --name before --repeat 6
speeds 1 "90 1" "91 1" "89 1" "90 1"
speeds 2 "90 1" "101 1" "95 1" "99 1" "97 1" "98 1" "96 1" "95 1"
is "repeats end when it is known" eval 'turn --name after --repeat 8 --stop-when before:5% --maximize speed && grep -q "^# stop rule *size 1: worse by more than 5 %, after 3 repeats (3 pairs)$" shown'
is "... else when the other side has no more" grep -q "^# stop rule *size 2: the other side has no more repeats, after 6 repeats (6 pairs)$" shown
is "... so many rows there are" eval '[ "$(wc -l <own/turn.1)" = 3 ] && [ "$(wc -l <own/turn.2)" = 6 ] && grep -q "^# finished *9 valid" shown'
is "... compare says the same" eval '"$samples" compare before after --store turns --regression 5% --maximize speed --output-format csv >shown 2>&1; grep -q "^turns,size.1,speed,.*,3,0.9[0-9]*,yes," shown && grep -q "^turns,size.2,speed,.*,6,0.[0-9]*,cannot tell yet," shown'
speeds 1 "200 1" "201 1" "202 1" "203 1"
speeds 2 "100 1" "101 1" "99 1" "100 1"
is "not worse; a property that should be low is worse if it is higher" eval 'turn --name low --repeat 6 --stop-when before:5% --minimize speed && grep -q "^# stop rule *size 1: worse by more than 5 %, after 3 " shown && grep -q "^# stop rule *size 2: not worse by more than 5 %, after 3 " shown'
speeds 1 "100 110" "101 111" "99 109" "100 110"
speeds 2 "100 100" "101 101" "99 99.1" "100 100"
is "against another property of the same results" eval 'turn --name within --repeat 4 --stop-when other:5% --maximize speed && grep -q "^# stop rule *size 1: worse by more than 5 %, after 3 repeats" shown && grep -q "^# stop rule *size 2: not worse by more than 5 %, after 3 repeats" shown'
speeds 1 "100 110" "101 111" "99 109"
known() { "$sweep" turns.yaml --experiments own/turns.json --store known --where "size == 1" "$@" >shown 2>&1; }
is "... that the store has already" eval 'known --name three --repeat 3 && known --name more --repeat 8 --stop-when other:5% --maximize speed && grep -q "^# stop rule *size 1: worse by more than 5 %, after 3 repeats (3 pairs)$" shown && [ "$(wc -l <own/turn.1)" = 3 ]'
is "... that an interrupted operation has" eval 'speeds 1 "100 110" "101 111" "nothing"; turn --name half --repeat 8 --stop-when other:5% --maximize speed --where "size == 1" --max-failures 1; grep -q "^# stopped" shown && sed -i "s/nothing/99 109/" own/speeds.1 && printf "\n\n" >own/turn.1 && "$sweep" --resume half --store turns >shown 2>&1; grep -q "^# stop rule *size 1: worse by more than 5 %, after 3 repeats (3 pairs)$" shown'
is "a resumed operation counts what it has" eval 'speeds 1 "90 1" "91 1" "nothing"; turn --name part --repeat 8 --stop-when before:5% --maximize speed --where "size == 1" --max-failures 1; grep -q "^# stopped" shown && sed -i "s/nothing/89 1/" own/speeds.1 && printf "\n\n" >own/turn.1 && "$sweep" --resume part --store turns >shown 2>&1; grep -q "^# stop rule *size 1: worse by more than 5 %, after 3 repeats (3 pairs)$" shown'
is "... and keeps the option" eval '! "$sweep" --resume part --store turns --stop-when before:6% >shown 2>&1 && grep -q "begun with --stop-when before:5%" shown'
speeds 1 "90 1"
is "an operation without the point has no pairs: one result" eval '"$sweep" turns.yaml --experiments own/turns.json --store turns --where "size == 2" --name little >/dev/null; turn --name alone --repeat 8 --stop-when little:5% --maximize speed --where "size == 1" && grep -q "^# stop rule *size 1: the other side has no result, after 1 repeat (0 pairs)$" shown'
bad() { refused "$1" 2 "$2" "$sweep" turns.yaml --experiments own/turns.json --store turns --name bad --repeat 5 --stop-when "$3" $4; }
bad "no such operation" "--stop-when nothing:5%: the store turns has no operation of that name" nothing:5% "--maximize speed"
bad "no share" "--stop-when before: expected OPERATION:SHARE or PROPERTY:SHARE" before "--maximize speed"
bad "a share of 100 %" "expected OPERATION:SHARE" before:100% "--maximize speed"
bad "no property" "--stop-when needs a property" before:5% ""
bad "two" "--stop-when needs a property" before:5% "--maximize speed --minimize other"
bad "an unknown one" "turns has no property sped" before:5% "--maximize sped"
bad "too few repeats" "needs --repeat, the highest number of repeats of an entity; it must be at least 3" before:5% "--maximize speed --repeat 2"
bad "halving" "--stop-when is not for --order halving" before:5% "--maximize speed --order halving --budget size=1..2"
finish
