#!/bin/sh
# test_kept_in_store.sh - tune.json, and what a store keeps: experiments, actuator configuration, data hashes. It is read and gone on with
# from anywhere.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples space=$BUILD/space
says() { # TEXT COMMAND... - the command succeeds and prints a line that matches
    text=$1
    shift
    "$@" >"$tmp/shown" 2>&1 && grep -qE -e "$text" "$tmp/shown" || { cat "$tmp/shown"; false; }
}
mkdir -p user/exp && cd user || exit 1
cat >exp/work.sh <<'E2'
#!/bin/sh
cat "$2" >/dev/null || exit 1
echo "$TUNE_INPUT_A" >>"$(dirname "$0")/log"
[ "$TUNE_INPUT_A" != "$(cat "$(dirname "$0")/stop" 2>/dev/null)" ] || sleep 86400
echo "{\"speed\": $TUNE_INPUT_A.5}" >"$TUNE_OUTPUT/report.json"
E2
cat >exp/maker.sh <<'E2'
#!/bin/sh
echo "made $1" >>"$(dirname "$0")/made"
echo rows >"$1"
E2
chmod +x exp/work.sh exp/maker.sh
cat >exp/work.json <<'E2'
{"identifier": "work", "actuator": "toys", "program": "./work.sh", "output": null, "folders": {"data_directory": "data"},
 "inputs": [
  {"identifier": "a", "required": true, "domain": {"domainRange": [0, 100], "interval": 1}},
  {"identifier": "rows", "default": "news", "domain": {"values": ["news"]}, "flag": "--data", "role": "data",
   "format": "{data_directory}/{}.txt", "make": ["./maker.sh", "{data_directory}/{}.txt"]}],
 "targets": [{"identifier": "speed", "unit": "1/s"}]}
E2
printf 'entitySpace:\n  - {identifier: a, propertyDomain: {values: [1, 2, 3]}}\nexperiments: [{actuatorIdentifier: toys, experimentIdentifier: work}]\n' >s.yaml
printf 'actuatorIdentifier: toys\nparameters: {data_directory: elsewhere}\n' >machine.yaml

# ---- tune.json ----
echo '{"store": "mine", "experiments": ["exp"], "actuator_configuration": "machine.yaml"}' >tune.json
is "tune.json names store, experiments and configuration" eval 'says "^# store +mine$" "$sweep" s.yaml --name one --where "a < 3" && grep -q "2 valid" ../shown && [ -s elsewhere/news.txt ] && [ ! -e data ]'
is "... of samples" eval '[ "$("$samples" show s.yaml --output-format csv | tail -n 1 | cut -d, -f6)" = 2.5 ]'
is "... of space" eval 'says "Identifier: space-[0-9a-f]*-[0-9a-f]{6}$" "$space" describe s.yaml && says toys "$space" experiments && says "^s.yaml: fine" "$space" check s.yaml'
is "a flag takes its place" eval 'says "^# store +other$" "$sweep" s.yaml --store other --where "a == 1" && [ -e other/store.json ]'
is "... a space without its actuator does not need the configuration" eval 'cp -r exp others && sed -i s/toys/others/ others/work.json && sed s/toys/others/ s.yaml >o.yaml && says "^# 3 of 3 would be" "$sweep" o.yaml --experiments others --store new --dry-run'
refused "... a flag's must fit" 2 "no experiment of this space has the actuator toys" "$sweep" o.yaml --experiments others --store new --actuator-configuration machine.yaml
is "one path is enough" eval 'mv tune.json all.json && echo "{\"experiments\": \"exp/work.json\"}" >tune.json && says toys "$space" experiments'
echo '{"stores": "mine"}' >tune.json
refused "a key that is none" 2 'tune.json:1:2: unknown key "stores" in tune.json; the nearest is "store"' "$samples" status
echo '{"store": 3}' >tune.json
refused "a store that is none" 2 'tune.json:1:11: "store" must be a text' "$sweep" s.yaml
echo '{"experiments": ["a", 3]}' >tune.json
refused "experiments that are none" 2 "tune.json:1:23: each of experiments must be the path of a file or folder" "$space" check s.yaml
echo '{' >tune.json
refused "a file that is no JSON" 2 "tune.json:" "$samples" status
mv all.json tune.json

# ---- the store alone ----
echo 3 >exp/stop
is "an operation is ended" eval '"$sweep" s.yaml --name two >said & await $! has 4 exp/log && kill -INT $!; wait $!; grep -q "^# stopped" said'
rm exp/stop
mkdir ../far && cd ../far || exit 1
is "--resume from another folder needs nothing else" says "3 valid|1 valid" "$sweep" --resume two --store ../user/mine
is "... and nothing is measured twice" eval '[ "$(sort ../user/exp/log | tr "\n" " ")" = "1 1 2 3 3 " ]'
is "samples need no experiment" eval 'id=$(ls ../user/mine/spaces | sed "s/\..*//") && [ "$("$samples" best "$id" --store ../user/mine --maximize speed --columns identifier --output-format csv | sed -n 2p)" = a.3 ]'
is "the command has the configuration's folder" says "work.sh --data $tmp/user/elsewhere/news.txt$" "$samples" best "$id" --store ../user/mine --maximize speed --print-command
is "the store says which data file had which hash" eval 'hash=$("$samples" show work --store ../user/mine --columns data_hash --output-format csv | sed -n 2p) && [ -n "$hash" ] && grep -l "$hash" ../user/mine/data/*.json >noted && grep -q "elsewhere/news.txt\"" $(cat noted)'
cp -r ../user/mine moved && mv ../user/exp ../user/gone
is "... nor a store that was copied, without the program" says "2.5" "$samples" show "$id" --store moved
refused "measuring needs the program, and says where it was" 1 "user/exp" "$sweep" --resume two --store moved
mv ../user/gone ../user/exp
is "merge copies what is kept" eval '"$samples" merge moved --store merged --with-programs >/dev/null && ls merged/experiments | grep -q toys.work.json.folder && ls merged/data | grep -q json && says 2.5 "$samples" show "$id" --store merged --include matching'
cd ../user || exit 1
is "an edited experiment replaces the copy" eval 'sed -i "s/\"1\/s\"/\"rows\/s\"/" exp/work.json && "$sweep" s.yaml --name three >/dev/null && grep -q "rows/s" mine/experiments/toys.work.json'
is "... which the file given outweighs" eval 'sed "s/rows\/s/steps\/s/" exp/work.json >more.json && says "steps/s" "$space" experiments work --experiments more.json --store mine'

# ---- data that must be made ----
rm -r elsewhere && made=$(wc -l <exp/made)
is "where all is known, the data file is not made again" eval 'says "0 failed, 3 known" "$sweep" s.yaml && [ ! -e elsewhere/news.txt ] && [ "$(wc -l <exp/made)" = $made ]'
is "... where something is to be measured, it is" eval 'says "3 valid" "$sweep" s.yaml --remeasure && [ -s elsewhere/news.txt ] && [ "$(wc -l <exp/made)" = $((made + 1)) ]'
is "... and where the maker is another" eval 'rm -r elsewhere && echo "# another" >>exp/maker.sh && says "3 known" "$sweep" s.yaml && [ -s elsewhere/news.txt ]'
for note in mine/data/*; do echo '{}' >"$note"; done
refused "a note that makes no sense is an error" 1 "expected the path and the hash of a data file; remove it" "$sweep" s.yaml --remeasure
finish
