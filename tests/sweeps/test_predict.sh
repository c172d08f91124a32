#!/bin/sh
# test_predict.sh - what a model says of a space: build/samples predict, with intervals, points, what it refuses to speak of, and
# large spaces; the shares of effect.
. tests/tap.sh
cd "$tmp" || exit 1
LC_ALL=C.UTF-8
export LC_ALL
samples=$BUILD/samples

# ---- speed is 100 batch^0.7 exp(-8 (lr - 0.3)^2), of large 0.4 times that, with 1 % noise; batch 32 and huge were never measured ----
cat >work.json <<'E2'
{"identifier": "work", "actuator": "replay", "description": "", "inputs": [
  {"identifier": "batch", "required": true, "domain": {"domainRange": [1, 100], "interval": 1}},
  {"identifier": "lr", "required": true, "domain": {"domainRange": [0, 1]}},
  {"identifier": "model", "required": true, "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}},
  {"identifier": "gpus", "default": 1, "domain": {"domainRange": [0, 9], "interval": 1}}],
 "targets": [{"identifier": "speed", "unit": "tokens/s"}, {"identifier": "same", "unit": ""}, {"identifier": "kernel", "type": "text"},
             {"identifier": "loss", "unit": "", "optional": true}]}
E2
space() { # NAME BATCHES - a space file
    cat >"$1" <<E2
entitySpace:
  - {identifier: batch, propertyDomain: {values: $2}}
  - {identifier: lr, propertyDomain: {values: [0.1, 0.2, 0.3, 0.4, 0.5]}}
  - {identifier: model, propertyDomain: {values: [small, large, huge]}}
  - {identifier: gpus, propertyDomain: {values: [1]}}
experiments: [{actuatorIdentifier: replay, experimentIdentifier: work}]
E2
}
space s.yaml "[1, 2, 4, 8, 16, 32]"
awk 'function next_share() { x = (x * 1103 + 12345) % 65536; return x / 65536 }
BEGIN {
    x = 7; print "batch,lr,model,gpus,speed,same,loss"
    for (i = 0; i < 50; i++) {
        m = i % 2; b = 2 ^ (int(i / 2) % 5); lr = (1 + int(i / 10)) / 10
        if (i > 1 && i < 48 && next_share() > 0.45) continue
        for (r = 0; r < 2; r++)
            printf "%d,%.1f,%s,1,%.6f,7,\n", b, lr, m ? "large" : "small", 100 * b ^ 0.7 * exp(-8 * (lr - 0.3) ^ 2) * (m ? 0.4 : 1) * (1 + 0.02 * (next_share() - 0.5)) } }' >rows.csv
results=$(($(wc -l <rows.csv) - 1))
"$samples" import csv rows.csv --experiment work --experiments work.json --inputs batch,lr,model,gpus --store st >notes 2>&1 || cat notes
own="--experiments work.json --store st --include matching"
ask() { "$samples" predict s.yaml $own "$@"; }

is "at least 90 % of the unmeasured points of the grid are in their interval, which is narrow" eval 'ask --property speed --columns batch,lr,model,predicted,low,high,results --output-format csv 2>notes >got && awk -F, "
    NR > 1 && \$4 != \"\" && \$7 == \"\" { v = 100 * \$1 ^ 0.7 * exp(-8 * (\$2 - 0.3) ^ 2) * (\$3 == \"large\" ? 0.4 : 1)
        n++; in_it += v > \$5 && v < \$6; narrow += \$6 < 1.5 * \$5 }
    END { print n, in_it, narrow; exit !(n > 15 && in_it >= 0.9 * n && narrow >= 0.9 * n) }" got'
is "... a measured one has its mean and results, and no nearest" eval 'ask --property speed --where "batch == 1 and lr == 0.1 and model == \"small\"" --columns measured,results,nearest --output-format csv >got && awk -F, "NR == 2 { exit !(\$1 > 70 && \$1 < 75 && \$2 == 2 && \$3 == \"\") }" got || { cat got; false; }'
is "... an unmeasured one names the nearest measured one by what differs" eval 'ask --property speed --columns results,why,nearest --output-format csv 2>notes | grep "^,," >got && [ $(wc -l <got) -gt 15 ] && ! grep -vE "^,,\"?(batch|lr|model) " got'
is "it says what it is a model of, and what it refuses" eval 'ask --property speed >shown 2>notes && grep -q "model of the logarithm of speed: from $results results of $((results / 2)) entities$" shown && grep -q "of 40 of 90 points nothing is known" notes || { cat shown notes; false; }'
is "a point between the values of the space" eval 'ask --property speed --point batch=3,lr=0.25,model=small --columns predicted,low,high --output-format csv | awk -F, "NR == 2 { exit !(\$2 < 211.5 && 211.5 < \$3 && \$3 < 1.4 * \$2) }"'
is "points of a file, in its order; other columns are left out and counted" eval 'printf "lr,model,batch,note\n0.2,huge,1,x\n0.2,small,3,y\n" >points.csv && ask --property speed --points points.csv --columns batch,model,why --output-format csv 2>notes >got && [ "$(sed 1d got | paste -sd" ")" = "1,huge,model huge was never measured 3,small," ] && grep -q "points.csv: 1 column is no dimension" notes'
is "JSON has the same" eval 'ask --property speed --point batch=4,lr=0.2,model=small --output-format json | python3 -c "import json, sys; r = json.load(sys.stdin)[0]; assert r[\"low\"] < r[\"predicted\"] < r[\"high\"] and r[\"why\"] is None and 0 < r[\"unsure_percent\"] < 100"'
is "the same rows give the same answer" eval 'ask --property speed --output-format csv >one 2>notes && ask --property speed --output-format csv 2>notes | cmp one -'

# ---- what it knows nothing of ----
refused "a category never measured" 1 "nothing is known of this point: model huge was never measured" ask --property speed --point batch=4,lr=0.2,model=huge
refused "a category that is none" 1 "model tiny is not a value of the space" ask --property speed --point batch=4,lr=0.2,model=tiny
refused "outside the measured range" 1 "batch 32 is outside the measured 1 to 16" ask --property speed --where 'batch == 32 and model == "small"'
refused "another value of a dimension with one" 1 "gpus 2 was never measured: it is always 1" ask --property speed --point batch=4,lr=0.2,model=small,gpus=2
refused "no number" 1 "lr nan is not a number" ask --property speed --point batch=4,lr=nan,model=small
refused "a constant target" 1 "all $results values of same are 7, so there is nothing to model" ask --property same
refused "a text" 2 "kernel is a text" ask --property kernel
refused "a target without a value" 1 "nothing is known of loss: no entity of this space has a value" ask --property loss
refused "no property" 2 "predict needs one property" ask
refused "two" 2 "predict needs one property" ask --property speed,same
head -n 3 rows.csv >one.csv && "$samples" import csv one.csv --experiment work --experiments work.json --inputs batch,lr,model,gpus --store single >notes 2>&1
refused "one entity" 1 "only one entity has a value of speed" "$samples" predict s.yaml --experiments work.json --store single --include matching --property speed
refused "a point that lacks a dimension" 2 "does not name lr" ask --property speed --point batch=4,model=small
refused "... names one twice" 2 "names batch twice" ask --property speed --point batch=4,batch=2,lr=0.1,model=small
refused "... names none" 2 "there is no dimension bacth" ask --property speed --point bacth=4
refused "points and a condition" 2 "only one of --point, --points and --where" ask --property speed --point batch=4 --where 'lr > 0'
refused "entities of given points" 2 "for the points of the space" ask --property speed --points points.csv --entities 3
printf 'lr,model\n0.2,small\n' >bad.csv
refused "a file without a dimension" 2 "bad.csv:1: the dimension batch of the space has no column" ask --property speed --points bad.csv
printf 'lr,model,batch\n0.2,small\n' >bad.csv
refused "... a short row" 2 "bad.csv:2: the row has 2 fields, but the heading has 3" ask --property speed --points bad.csv
printf 'lr,model,batch\n,small,2\n' >bad.csv
refused "... an empty cell" 2 "bad.csv:2: lr is empty" ask --property speed --points bad.csv

# ---- what is worth measuring ----
is "best --predicted: unmeasured entities, the highest expected gain first" eval '"$samples" best s.yaml $own --maximize speed --predicted --count 3 --columns rank,expected_gain,predicted,low,high,batch,lr,model --output-format csv 2>notes >got && ask --property speed --columns batch,lr,model,predicted,results --output-format csv 2>notes >all && awk -F, "
    NR == FNR { if (FNR > 1) { sure[\$1 FS \$2 FS \$3] = \$4; seen[\$1 FS \$2 FS \$3] = \$5 }; next }
    FNR > 1 { k = \$6 FS \$7 FS \$8; n++; good += seen[k] == \"\" && sure[k] == \$3 && \$4 < \$3 && \$3 < \$5 && (n == 1 || \$2 <= before); before = \$2 }
    END { exit !(n == 3 && good == 3) }" all got || { cat got; false; }'
grep -v -e '^16,0.3,small' -e '^16,0.2,small' -e '^16,0.4,small' rows.csv >open.csv # the best region is open
is "... the best one, if it is not measured" eval '"$samples" import csv open.csv --experiment work --experiments work.json --inputs batch,lr,model,gpus --store open >notes 2>&1 && [ "$("$samples" best s.yaml --experiments work.json --store open --include matching --maximize speed --predicted --count 1 --columns batch,lr,model --output-format csv 2>notes | sed 1d)" = 16,0.3,small ]'
is "... minimized, and by a condition" eval '[ "$("$samples" best s.yaml $own --minimize speed --predicted --count 1 --where "batch == 4 and lr > 0.1" --columns batch --output-format csv 2>notes | sed 1d)" = 4 ] && "$samples" best s.yaml $own --minimize speed --predicted 2>notes | tr -d "\n#" | grep -q "not measured yet; the best measured mean of speed is 2"'
refused "... of two properties" 2 "best --predicted takes one property" "$samples" best s.yaml $own --maximize speed --minimize same --predicted
refused "... of each value" 2 "best --predicted takes no --per" "$samples" best s.yaml $own --maximize speed --per batch --predicted
refused "... where nothing is known" 1 "nothing is known of the entities that were not measured: batch 32 is outside the measured 1 to 16; a sweep with" "$samples" best s.yaml $own --maximize speed --where 'batch == 32' --predicted

# ---- the share of each dimension ----
# Of the variance of the logarithm over batch 1 to 16: batch 0.674, model 0.300, lr 0.026.
is "effect: the share of each dimension is within 0.03 of the true one, in a narrow interval" eval '"$samples" effect s.yaml $own --property speed --columns dimension,total,total_low,total_high,first_order --output-format csv 2>notes | sed 1d | sort -u >got && awk -F, "
    { true = \$1 == \"batch\" ? 0.674 : \$1 == \"model\" ? 0.3 : 0.026; d = \$2 - true; d = d < 0 ? -d : d; n++
      good += d < 0.03 && \$3 <= \$2 && \$2 <= \$4 && \$4 - \$3 < 0.15 && \$5 < \$2 + 0.03 }
    END { exit !(n == 3 && good == 3) }" got || { cat got; false; }'
is "... a line lists them, the highest first" eval '"$samples" effect s.yaml $own --property speed >shown && tr -d "\n#" <shown | tr -s " " | grep -qE "share of the variance of the logarithm of speed by dimension, with others and alone: batch 6[0-9] % \([0-9]+ to [0-9]+\), alone .*; model [23][0-9] %.*; lr [0-9] %" || { cat shown; false; }'
awk 'BEGIN { print "batch,lr,model,gpus,speed"; for (i = 0; i < 12; i++) { lr = 0.1 + i * 0.4 / 11; b = 2 ^ (i * 7 % 5); m = i * 5 % 3 > 0
    printf "%d,%.4f,%s,1,%.4f\n", b, lr, m ? "large" : "small", 100 * b ^ 0.7 * exp(-8 * (lr - 0.3) ^ 2) * (m ? 0.4 : 1) } }' >sampled.csv
sed 's/values: \[0.1.*0.5\]/domainRange: [0.1, 0.6], variableType: CONTINUOUS_VARIABLE_TYPE/' s.yaml >sampled.yaml
"$samples" import csv sampled.csv --experiment work --experiments work.json --inputs batch,lr,model,gpus --store sampled >notes 2>&1 || cat notes
is "... of dimensions without a single pair, too, and no pairs are missed" eval '"$samples" effect sampled.yaml --experiments work.json --store sampled --include matching --property speed --columns dimension,from,pairs,total --output-format csv 2>notes >got && grep -q "^batch,,0," got && grep -q "^model,,0," got && awk -F, "NR > 1 && !(\$4 > 0) { exit 1 }" got && ! grep -qE "pairs only|unknown" notes || { cat got notes; false; }'
is "... few entities have none, and it says so" eval 'head -n 4 sampled.csv >few.csv && "$samples" import csv few.csv --experiment work --experiments work.json --inputs batch,lr,model,gpus --store few >notes && ! "$samples" effect sampled.yaml --experiments work.json --store few --include matching --property speed >got 2>notes && grep -q "no two entities" notes || { cat got notes; false; }'

# ---- invalid entities, and large spaces ----
# The entities of batch 16 as the store's own rows without a valid result, beside the others.
space part.yaml "[1, 2, 4, 8, 16]"
awk -F, -v OFS=, 'NR == 1 {
        print "uid,operation,space,request_index,repeat,experiment,entity,generator,started,measurement_s,status,reason,host,host_class,build_id,weights_hash,data_hash,core_share,stable,batch,lr,model,gpus,speed,same,loss"; next }
    { bad = $1 == 16 || ($1 == 8 && $3 == "large")
        printf "a%031d,one,space-000000,%d,0,replay.work,batch.%s-lr.%s-model.%s-gpus.1,g,%d,1,%s,%s,h,c,,,,,,%s,%s,%s,1,%s,%s,\n", NR, NR, $1, $2, $3, 1700000000 + NR, bad ? "invalid" : "valid", bad ? "no memory" : "", $1, $2, $3, bad ? "" : $5, bad ? "" : 7 }' rows.csv >half.csv
"$samples" import csv half.csv --experiment work --experiments work.json --store half >notes 2>&1 || cat notes
half() { "$samples" predict part.yaml --experiments work.json --store half --include matching --property speed "$@"; }
is "entities without a valid result give each point its chance" eval 'half --point batch=8,lr=0.3,model=large --columns valid_percent --output-format csv >got && half --point batch=1,lr=0.3,model=small --columns valid_percent --output-format csv >low && half 2>&1 | grep -q "; [1-9][0-9]* more were tried, but have no valid result" && [ "$(sed 1d low | cut -d. -f1)" -gt 80 ] && [ "$(sed 1d got | cut -d. -f1)" -lt "$(sed 1d low | cut -d. -f1)" ] || { cat got low; half; false; }'
is "... n results cannot make it surer than 1 in n + 2" eval 'half --columns valid_percent --output-format csv 2>notes | sed 1d >got && n=$(sed 1d half.csv | cut -d, -f20-22 | sort -u | wc -l) && awk -v n="$n" "/[0-9]/ { k++; low += \$1 < 50; bad += \$1 < 99.99 / (n + 2) || \$1 > 100 - 99.99 / (n + 2); most += \$1 > 100 - 101 / (n + 2) } END { print k, n, low, most, bad; exit !(k > 10 && n > 10 && low > 0 && most > 0 && !bad) }" got || { cat got notes; false; }'
refused "... and are no measured range" 1 "batch 16 is outside the measured 1 to 8" half --point batch=16,lr=0.3,model=small
sed 's/values: \[0.1.*0.5\]/domainRange: [0.1, 0.5], interval: 0.0000000001/' part.yaml >huge.yaml
refused "... none of those that were looked at meets the condition" 1 "none of 1000000 entities of the space, chosen evenly by a Sobol sequence, meets --where; others may" "$samples" predict huge.yaml --experiments work.json --store st --include matching --property speed --where 'lr < 0'
refused "... best --predicted the same" 1 "none of 1000000 entities of the space" "$samples" best huge.yaml --experiments work.json --store st --include matching --maximize speed --predicted --where 'lr < 0'
is "no entity of a listed space meets the condition: that is said, and not that all are measured" eval '"$samples" best s.yaml $own --maximize speed --predicted --where "batch > 99" >shown 2>&1 && grep -q "no entity of the space meets --where" shown && ! grep -q "is measured" shown || { cat shown; false; }'
printf 'batch,lr,model,gpus,speed\n1,0.1,small,1,1e308\n2,0.1,small,1,-1e308\n4,0.2,small,1,1e-308\n8,0.3,large,1,0\n16,0.1,large,1,1e308\n8,0.2,small,1,3e-308\n' >wide.csv
"$samples" import csv wide.csv --experiment work --experiments work.json --inputs batch,lr,model,gpus --store wide >notes 2>&1 || cat notes
is "values whose squares are infinite: expected values all the same" eval '"$samples" predict s.yaml --experiments work.json --store wide --include matching --property speed --where "batch < 5 and lr < 0.3 and model == \"small\"" --columns predicted --output-format csv 2>notes | sed 1d >got && [ "$(wc -l <got)" = 6 ] && ! grep -vE "^-?[0-9.]+(e[+-]?[0-9]+)?$" got || { cat got notes; false; }'
is "... effect has its pairs, and says why there are no shares" eval '"$samples" effect s.yaml --experiments work.json --store wide --include matching --property speed --width 250 >shown 2>notes && grep -q "no share of each dimension: .* the variance of the target is too large for a number" shown || { cat shown notes; false; }'
is "a space of 6 * 10^10 entities: some of them, evenly, and it says so" eval '"$samples" predict huge.yaml --experiments work.json --store st --include matching --property speed --entities 64 --output-format csv 2>notes >got && [ $(sed 1d got | wc -l) = 64 ] && grep -q "64 are looked at, chosen evenly by a Sobol sequence; --entities changes" notes && [ $(sed 1d got | cut -d, -f1 | sort | uniq -c | awk "{ print (\$1 >= 10 && \$1 <= 15) }" | sort -u) = 1 ] || { cat notes; false; }'
finish
