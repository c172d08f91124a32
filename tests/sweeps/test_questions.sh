#!/bin/sh
# test_questions.sh - docs/questions.md: its sweeps are done, its commands run, and what the page shows is compared. The answers
# are compared with the rows, too, by other means.
. tests/tap.sh
cd "$tmp" || exit 1
LC_ALL=C.UTF-8
export LC_ALL
mkdir tests && cp -r "$here/tests/questions" tests && ln -s "$BUILD" build || exit 1
page=$here/docs/questions.md

# ---- the rows ----
sed -n '/^```sh$/,/^```$/p' "$page" | sed '/^```/d' >measure.sh
eval "$(grep "^q=" measure.sh)"
is "the page's sweeps" sh -e measure.sh
rows() { build/samples show training --store training --output-format csv --columns "$@"; } # COLUMNS [OPTION...]
is "at least 200 rows, measured here" eval '[ "$(rows status | sed 1d | grep -c .)" -ge 200 ]'
rows operation,model_name,model_max_length,batch_size,torch_dtype,status,dataset_tokens_per_second,peak_anonymous_bytes >rows.csv

# ---- the page ----
# Its indented commands, one per line, and behind each a line with the number of its block's first line.
awk '/^    build\// { on = 1; text = "" } on && /^    / { line = $0; sub(/^ +/, "", line); more = sub(/\\$/, "", line); text = text line; if (!more) { print NR "\t" text; on = 0 } }' "$page" >commands
# shown LINE - the block that follows that line of the page.
shown() { awk -v from="$1" 'NR > from && /^```$/ { if (on++) exit; next } NR > from && on' "$page"; }
# fits SHOWN OUTPUT - each line is there, in this order. A line may end in " ..."; a line of "..." stands for any number of them.
fits() {
    awk 'NR == FNR { wanted[++n] = $0; next }
        BEGIN { k = 1 }
        { while (wanted[k] == "...") { any = 1; k++ }
          w = wanted[k]; cut = sub(/ \.\.\.$/, "", w)
          if (k <= n && (cut ? index($0, w) == 1 : $0 == w)) { k++; any = 0 }
          else if (!any) { print "not on the page: " $0; bad = 1; exit } }
        END { while (wanted[k] == "...") k++
              if (!bad && k <= n) { print "not printed: " wanted[k]; bad = 1 }
              exit bad }' "$1" "$2"
}
answers() { # COMMAND LINE - the command prints what the page shows
    eval "$1" >output 2>said.err || { cat said.err; return 1; }
    shown "$2" >wanted
    [ -s wanted ] && fits wanted output || { cat output; return 1; }
}
is "the page has a command for each question" test "$(grep -c "^## .*?$" "$page")" = "$(wc -l <commands)"
while IFS="$(printf '\t')" read -r line command; do
    is "$command" answers "$command" "$line"
done <commands

# ---- the same answers from the rows, by other means ----
# Of each entity: model, length, batch size, type, mean speed, memory, number of valid rows; -1 without one.
awk -F, -v OFMT=%.15g -v CONVFMT=%.15g 'NR > 1 && $1 == "second" { e = $2 " " $3 " " $4 " " $5; seen[e] = 1; if ($6 == "valid") { n[e]++; speed[e] += $7; memory[e] = $8 } }
    END { for (e in seen) print e, n[e] ? speed[e] / n[e] : -1, n[e] ? memory[e] : -1, n[e] + 0 }' rows.csv >entities
ask() { command=$1; shift; build/samples "$command" $q "$@" --output-format csv 2>/dev/null | sed 1d; }
same_numbers() { # EXPECTED GOT - lines of names and numbers, the numbers to 9 digits
    sort "$1" >a && tr ',' ' ' <"$2" | sort >b && awk 'NR == FNR { a[FNR] = $0; n = FNR; next } { split(a[FNR], w); if (NF < 1) bad = 1
        for (i = 1; i <= NF; i++) if (w[i] != $i && !(w[i] + 0 != 0 && (w[i] - $i) ^ 2 < 1e-18 * w[i] ^ 2)) { print a[FNR] " : " $0; bad = 1 } }
        END { exit bad || FNR != n }' a b || { cat a b; false; }
}
fastest() {
    awk '$5 > 0 && $6 < 8e9 && $5 > best[$1] { best[$1] = $5; of[$1] = $2 " " $3 " " $4 } END { for (m in best) print m, of[m], best[m] }' entities >wanted
    ask best --maximize dataset_tokens_per_second --per model_name --where 'peak_anonymous_bytes < 8e9' \
        --columns model_name,model_max_length,batch_size,torch_dtype,dataset_tokens_per_second >got && same_numbers wanted got
}
is "fastest: the same from the rows" fastest
front() {
    awk '$5 > 0 { line[++n] = $0; s[n] = $5; m[n] = $6; model[n] = $1 } END { for (i = 1; i <= n; i++) { beaten = 0
        for (k = 1; k <= n; k++) if (model[k] == model[i] && s[k] >= s[i] && m[k] <= m[i] && (s[k] > s[i] || m[k] < m[i])) beaten = 1
        if (!beaten) { split(line[i], w, " "); print w[1], w[2], w[3], w[4] } } }' entities >wanted
    ask best --maximize dataset_tokens_per_second --minimize peak_anonymous_bytes --per model_name \
        --columns model_name,model_max_length,batch_size,torch_dtype >got && [ "$(wc -l <got)" -gt 8 ] && same_numbers wanted got
}
is "the Pareto front: the same from the rows" front
lost() {
    for m in small medium large; do for l in 512 1024 2048; do for b in 1 2 4 8; do for t in float32 bfloat16; do echo "$m $l $b $t"; done; done; done; done |
        awk 'NR == FNR { there[$1 " " $2 " " $3 " " $4] = 1; valid[$1 " " $2 " " $3 " " $4] = $7 > 0; next } !valid[$0] { print $0, there[$0] ? "tried" : "unmeasured" }' entities - >wanted
    ask missing --columns model_name,model_max_length,batch_size,torch_dtype,status | sed 's/failed$/tried/; s/invalid$/tried/' >got && same_numbers wanted got
}
is "missing: the same from the rows" lost
ratios() {
    awk '$5 > 0 { s[$1 " " $2 " " $4, $3] = $5; rest[$1 " " $2 " " $4] = 1 } END { for (b = 2; b <= 8; b *= 2) { n = 0; sum = 0
        for (r in rest) if ((r, 1) in s && (r, b) in s) { n++; sum += log(s[r, b] / s[r, 1]) }
        printf "%d %d %.12g\n", b, n, exp(sum / n) } }' entities >wanted
    ask effect --x batch_size --property dataset_tokens_per_second --columns to,pairs,ratio >got && same_numbers wanted got
}
is "effect: the same from the rows" ratios
cost() {
    awk -F, 'NR > 1 && $6 == "valid" && $1 == "second" { e = $2 " " $3 " " $4 " " $5; n[e]++; c[e] += 3.2 / 3600 * 1e6 / $7 }
        END { for (e in n) { v = c[e] / n[e]; if (!least || v < least) { least = v; of = e } } printf "%s %.12g\n", of, least }' rows.csv >wanted
    ask best --derive 'usd = 3.2 / 3600 * 1e6 / dataset_tokens_per_second' --minimize usd --count 1 \
        --columns model_name,model_max_length,batch_size,torch_dtype,usd >got && same_numbers wanted got
}
is "cost: the same from the rows" cost
builds() {
    awk -F, '$6 == "valid" { e = $2 "/" $3 "/" $4 "/" $5; n[e, $1]++; s[e, $1] += $7; all[e] = 1 }
        END { for (e in all) if ((e, "first") in n && (e, "second") in n) { k++; printf "%.12g %.12g\n", s[e, "first"] / n[e, "first"], s[e, "second"] / n[e, "second"] } exit k != 8 }' rows.csv >wanted &&
        build/samples compare first second --store training --property dataset_tokens_per_second --columns a,b --output-format csv | sed 1d >got && same_numbers wanted got
}
is "two builds: the same from the rows" builds
cat >pairs.csv <<'E2'
a,b,kind,speed,loss
1,1,x,10,1
1,2,x,20,-1
2,1,x,10,1
2,2,x,22,2
3,1,x,"[9, 11]","[1, 1]"
3,2,x,19,2
4,1,x,7,1
1,2,y,40,1
E2
cat >pairs.json <<'E2'
{"identifier": "pairs", "actuator": "replay", "description": "", "inputs": [
  {"identifier": "a", "required": true, "domain": {"domainRange": [1, 9], "interval": 1}},
  {"identifier": "b", "required": true, "domain": {"domainRange": [1, 9], "interval": 1}},
  {"identifier": "kind", "required": true, "domain": {"values": ["x", "y"]}}],
 "targets": [{"identifier": "speed", "unit": ""}, {"identifier": "loss", "unit": ""}]}
E2
cat >pairs.yaml <<'E2'
entitySpace:
  - {identifier: a, propertyDomain: {values: [1, 2, 3, 4]}}
  - {identifier: b, propertyDomain: {values: [1, 2]}}
  - {identifier: kind, propertyDomain: {values: [x, y]}}
experiments: [{actuatorIdentifier: replay, experimentIdentifier: pairs}]
E2
pairs="pairs.yaml --experiments pairs.json --store pairs --include matching"
build/samples import csv pairs.csv --experiment pairs --experiments pairs.json --inputs a,b,kind --store pairs >said 2>&1 || cat said
# The ratios of b are 2, 2.2 and 1.9; p by hand, from t with two degrees of freedom.
cat >wanted <<'E2'
b,1,2,2.0296,1.9,2.2,3,0.0037,yes
E2
by_hand() {
    build/samples effect $pairs --x b --property speed --columns dimension,from,to,ratio,lowest,highest,pairs,p,differs --output-format csv |
        awk -F, 'NR > 1 { printf "%s,%s,%s,%.4f,%.4g,%.4g,%d,%.4f,%s\n", $1, $2, $3, $4, $5, $6, $7, $8, $9 }' >got && diff wanted got
}
is "effect: pairs that differ in nothing else, by a paired t test" by_hand
is "... one pair says nothing of chance; each dimension that varies" eval 'build/samples effect $pairs --property speed --columns dimension,from,to,ratio,p,differs --output-format csv >got && grep -qx "kind,x,y,2.0,," got && [ $(grep -c "^a," got) = 3 ]'
is "... values that have no ratio are left out, and counted" eval 'build/samples effect $pairs --x b --property loss --columns dimension,from,to,property,ratio,lowest,highest,pairs,p,differs --output-format csv >got 2>said && grep -q "1 pair is left out" said && grep -qx "b,1,2,loss,2.0,2.0,2.0,2,0.0,yes" got'
refused "... of a dimension that is none" 2 "there is no dimension c" build/samples effect $pairs --x c --property speed
refused "... of one value" 1 "b has only one value in these results" build/samples effect $pairs --x b --property speed --where "b == 1"
refused "... without pairs" 1 "no two entities with a valid result differ in one dimension alone" build/samples effect $pairs --property speed --where "a == 1 and b == 1 and kind == \"x\" or a == 2 and b == 2"
refused "... of what" 2 "effect needs a property: give --property PROPERTY" build/samples effect $pairs
cat >wanted <<'E2'
a,b,kind,status,tries,reason
4,1,y,unmeasured,0,
4,2,x,unmeasured,0,
4,2,y,unmeasured,0,
E2
is "missing: --where over inputs, for programs" eval 'build/samples missing ${pairs%% --include*} --where "a == 4" --columns a,b,kind,status,tries,reason --output-format csv | diff wanted -'
is "... --limit; nothing" eval '[ $(build/samples missing ${pairs%% --include*} --limit 2 --output-format csv | wc -l) = 3 ] && build/samples missing ${pairs%% --include*} --where "a == 4 and b == 1 and kind == \"x\"" | grep -qx "# nothing is missing: each entity that fits --where has a valid result"'
cat >open.yaml <<'E2'
entitySpace:
  - {identifier: text, propertyDomain: {variableType: OPEN_CATEGORICAL_VARIABLE_TYPE}}
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: odd}]
E2
again() { # the printed command measures what the table says
    command=$(build/samples best $q --maximize dataset_tokens_per_second --where 'torch_dtype == "bfloat16"' --per model_name,model_max_length --print-command) &&
        [ "$(echo "$command" | wc -l)" = 8 ] && echo "$command" | grep -q "training.sh --model large --max-length 2048 --batch-size 4 --dtype bfloat16$"
}
is "--print-command: one for each of --per" again
refused "... not where nothing fits" 1 "no valid result fits" build/samples best $q --maximize dataset_tokens_per_second --where 'peak_anonymous_bytes < 1' --print-command
cat >odd.sh <<'E2'
#!/bin/sh
printf '{"size": %d, "nonce": "%s"}\n' $((${#TUNE_INPUT_TEXT} * $2)) "$TUNE_NONCE" >"$TUNE_OUTPUT/report.json"
E2
chmod +x odd.sh
cat >odd.json <<'E2'
{"identifier": "odd", "program": "./odd.sh", "output": null, "arguments": ["--times"], "targets": [{"identifier": "size", "unit": ""}],
 "inputs": [{"identifier": "text", "required": true, "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}},
            {"identifier": "times", "default": 3, "flag": "--n=", "domain": {"domainRange": [1, 9], "interval": 1}}]}
E2
sed -i 's/\$2/${2#--n=}/' odd.sh
cat >odd.yaml <<'E2'
entitySpace: [{identifier: text, propertyDomain: {values: ["it's $HOME", plain]}}]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: odd}]
E2
odd() {
    build/sweep odd.yaml --experiments odd.json --store odd >said 2>&1 || { cat said; return 1; }
    command=$(build/samples best odd.yaml --experiments odd.json --store odd --maximize size --print-command) && mkdir out || return 1
    (TUNE_OUTPUT=out TUNE_NONCE=x; export TUNE_OUTPUT TUNE_NONCE; eval "env $command") && grep -q '"size": 30,' out/report.json || { echo "$command"; false; }
}
is "... it runs in a shell, with variables and quotes where they are needed" odd
sed 's/values: .*/values: [bad]}}]/' odd.yaml >bad.yaml
printf '#!/bin/sh\necho too bad >&2\nexit 1\n' >odd.sh
is "missing of what cannot be counted: what was tried" eval '! build/sweep bad.yaml --experiments odd.json --store odd >said 2>&1
    build/samples missing open.yaml --experiments odd.json --store odd --output-format csv >got 2>said && grep -q "cannot be counted, so those that nobody measured are not listed" said &&
    [ $(wc -l <got) = 2 ] && grep -qx "text.bad,bad,failed,1,exit code 1: too bad" got'
finish
