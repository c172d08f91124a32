#!/bin/sh
# test_repeats.sh - what repeats say: compare --regression.
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
is "... and people read it" eval '"$samples" compare a slower --regression 3% --maximize speed >shown; [ $? = 4 ] && grep -q "^# speed of b worse by more than 3 %: 0 yes, 0 no, 1 cannot tell yet$" shown && grep -q "^# more_pairs: so many more repeats" shown'
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
refused "of what" 2 "--regression of what?" "$samples" compare a all --regression 5%
refused "what is better must be known" 2 "is more of score better, or less? Say --maximize score or --minimize score" "$samples" compare a all --regression 5% --property score
refused "a property that is none" 2 "there is no property sped (the nearest is speed)" "$samples" compare a all --regression 5% --maximize sped
refused "--maximize alone" 2 "with --regression only" "$samples" compare a all --maximize speed
finish
