#!/bin/sh
# test_scatter.sh - samples plot: a property against another, sampled dimensions on true scales, facets.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep samples=$BUILD/samples
mkdir exp
cat >exp/work.sh <<'E2'
#!/bin/sh
awk -v a="$TUNE_INPUT_A" -v b="$TUNE_INPUT_B" -v k="$TUNE_INPUT_KIND" 'BEGIN {
    f = k == "odd" ? 3 : 1
    printf "{\"speed\": %.6f, \"bytes\": %.6f%s}\n", f * (a + b / 100), 10 * a * f, a == 4 ? "" : ", \"half\": 1" >(ENVIRON["TUNE_OUTPUT"] "/report.json") }'
E2
chmod +x exp/work.sh
echo '{"identifier": "work", "program": "./work.sh", "output": null, "inputs": [
 {"identifier": "a", "required": true, "domain": {"domainRange": [0, 1000]}},
 {"identifier": "b", "required": true, "domain": {"domainRange": [0, 1000]}},
 {"identifier": "c", "default": 1, "domain": {"domainRange": [0, 1000]}},
 {"identifier": "kind", "default": "plain", "domain": {"values": ["plain", "odd"]}}],
 "targets": [{"identifier": "speed", "unit": "1/s"}, {"identifier": "bytes", "unit": "bytes"}, {"identifier": "half", "unit": "", "optional": true}]}' >exp/work.json
echo '{"store": "st", "experiments": "exp"}' >tune.json
printf 'entitySpace:\n  - {identifier: a, propertyDomain: {values: [1, 2, 4]}}\n  - {identifier: b, propertyDomain: {values: [1, 3]}}\n  - {identifier: kind, propertyDomain: {values: [plain, odd]}}\nexperiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]\n' >grid.yaml
printf 'entitySpace:\n  - {identifier: a, propertyDomain: {domainRange: [0, 100], interval: 0.25}}\n  - {identifier: b, propertyDomain: {domainRange: [0, 50], interval: 0.5}}\nexperiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work}]\n' >two.yaml
sed 's/^  - {identifier: kind/  - {identifier: c, propertyDomain: {values: [1, 2]}}\n&/' grid.yaml >four.yaml
is "a grid" eval '"$sweep" grid.yaml | grep -q "12 valid"'
is "a sample" eval '"$sweep" two.yaml --order sobol --entities 20 | grep -q "20 valid"'
plot() { rm -f p.svg; "$samples" plot "$@" --svg p.svg --width 80 >shown 2>&1 || { cat shown; return 1; }; }
circles() { grep -c "<circle class=\"f" p.svg; }
joined() { grep -q "<path class=\"curve" p.svg; }
titles() { grep -o '<text[^>]*class="title"[^>]*>.*</text>\|<tspan class="title">[^<]*' p.svg | sed 's/<[^>]*>//g'; }

# ---- property against property ----
is "a property against another: a point for each entity, none joined" eval 'plot grid.yaml --property speed --x bytes && [ "$(grep -o "<circle" p.svg | wc -l)" = 12 ] && ! joined && grep -q ">bytes, bytes<" p.svg'
is "... a colour for each value of --series" eval 'plot grid.yaml --property speed --x bytes --series kind && [ "$(grep -o "<circle[^>]*f1" p.svg | wc -l)" = 7 ] && grep -q "kind odd" p.svg'
is "... in the terminal" eval 'LC_ALL=C plot grid.yaml --property speed --x bytes && [ "$(tr -cd "*" <shown | wc -c)" -ge 6 ] && grep -q "bytes" shown'
is "... --where chooses" eval 'plot grid.yaml --property speed --x bytes --where "a < 3" && [ "$(grep -o "<circle" p.svg | wc -l)" = 8 ]'
is "... points that lack it are counted" eval 'plot grid.yaml --property speed --x half && [ "$(grep -o "<circle" p.svg | wc -l)" = 8 ] && { grep -q "4 points have no half" p.svg || { cat shown; grep -o "class=.note.*" p.svg | head -5; false; }; }'
is "... a new column" eval 'plot grid.yaml --property speed --derive "mega = bytes / 1e6" --x mega && [ "$(grep -o "<circle" p.svg | wc -l)" = 12 ] && grep -q ">mega<" p.svg'
is "... both with a direction: the Pareto front has rings" eval 'plot grid.yaml --maximize speed --minimize bytes --x bytes && [ "$(grep -o "<circle class=.mark" p.svg | wc -l)" = 7 ] && grep -q ">Pareto front<" p.svg'
is "... whichever is on the x axis" eval 'plot grid.yaml --maximize speed --minimize bytes --x speed && grep -q ">Pareto front<" p.svg && grep -q ">speed, 1/s<" p.svg'
is "a dimension still makes curves" eval 'plot grid.yaml --property speed --x a && joined'
refused "neither a dimension nor a property" 2 "there is no dimension byte" "$samples" plot grid.yaml --property speed --x byte

# ---- sampled dimensions ----
marks() { grep -o "data-row=" p.svg | wc -l; }
bands() { grep -c "<path class=\"band" p.svg; }
is "two sampled dimensions: points over each, on true scales, and a line with its band" eval 'plot two.yaml --property speed && [ "$(marks)" = 40 ] && [ "$(bands)" = 2 ] && grep -q ">a<" p.svg && grep -q ">b<" p.svg'
is "... over one of them" eval 'plot two.yaml --property speed --x a && [ "$(marks)" = 20 ] && [ "$(bands)" = 1 ] && joined'
by="geometric mean over the other dimensions, by a model of 20 results of 20 entities"
is "... the caption says once what the line is" eval '[ "$(tr "\n" " " <shown | tr -s " " | grep -o "line: $by; band: its 95 % interval" | wc -l)" = 1 ] || { cat shown; false; }'
is "... without colours the legend has both" eval 'grep -q "^ *\* model   o measured$" shown'
is "... as CSV: the line follows the mean of a + b / 100, within its band, along a" eval '"$samples" plot two.yaml --property speed --x a --output-format csv >got && sed -n 1p got | grep -q ",results,line_over,line_by$" && [ "$(grep -c ",$" got)" = 20 ] && awk -F, "NR > 1 && \$10 != \"\" { n++
    near += \$4 < 10 || (\$6 > 0.9 * (\$4 + 0.25) && \$6 < 1.1 * (\$4 + 0.25)); odd += \$5 != \"\" || \$10 != \"a\" || \$9 != 20 || \$6 < \$7 || \$6 > \$8 }
    END { print n, near, odd; exit !(n == 49 && near > 45 && !odd) }" got || { cat got; false; }'
is "... a line for each of two targets" eval 'plot two.yaml --property speed,bytes --x a && [ "$(bands)" = 2 ]'
is "... too few results for a model: points alone, and that is said" eval 'plot two.yaml --property speed --x a --where "a < 20" && [ "$(bands)" = 0 ] && ! joined && [ "$(marks)" = 4 ] && [ "$(tr "\n" " " <shown | tr -s " " | grep -o "no line: 4 measured entities are too few for a model of 2 dimensions; 5 are enough" | wc -l)" = 2 ] || { cat shown; false; }'
is "... equal values everywhere: the same" eval 'plot two.yaml --property half --x a && [ "$(bands)" = 0 ] && tr "\n" " " <shown | tr -s " " | grep -q "no line: all 20 values of half are 1, so there is nothing to model"'
sed 's/^experiments/  - {identifier: kind, propertyDomain: {values: [plain, odd]}}\n&/' two.yaml >three.yaml
is "a sample of three dimensions" eval '"$sweep" three.yaml --order sobol --entities 24 | grep -q "[1-9] valid"'
heights() { sed -n "s/.*<path class=\"curve c$1\"[^>]* d=\"M[0-9.]* \([0-9.]*\)L[0-9.]* \([0-9.]*\)L[0-9.]* \([0-9.]*\).*/\1 \2 \3/p" p.svg; } # of the first three points of a line
is "... a line for each value of --series: odd is three times as fast, at its own place of the logarithmic axis" eval 'plot three.yaml --property speed --x a --series kind --log && [ "$(bands)" = 2 ] && grep -q ">kind odd, model<" p.svg && echo "$(heights 0) $(heights 1)" | awk "{ print; exit !(NF == 6 && \$4 < \$1 && \$5 < \$2 && \$6 < \$3) }" || { cat shown; false; }'
is "... in each facet, too, with the same note" eval 'plot three.yaml --property speed --x a --facet kind && [ "$(bands)" = 2 ] && [ "$(grep -c "kind odd" p.svg)" = 1 ]'
sed 's/^experiments/  - {identifier: c, propertyDomain: {values: [1, 2, 3, 4, 5]}}\n&/' two.yaml >five.yaml
awk 'BEGIN { print "a,b,c"; for (i = 0; i < 80; i++) printf "%d,%g,%d\n", i + 1, i % 16 / 2, i / 16 + 1 }' >list.csv
is "... more than 64 lines: none, and that is said" eval '"$sweep" five.yaml --points list.csv --store wide >/dev/null && plot five.yaml --store wide --property speed --x a --series b --facet c && [ "$(bands)" = 0 ] && tr "\n" " " <shown | tr -s " " | grep -q "no line: there would be more than 64, one for each curve of each drawing" || { cat shown; false; }'
is "... over a category: hollow marks with bars" eval 'plot three.yaml --property speed --x kind && [ "$(bands)" = 0 ] && [ "$(grep -c "<path class=\"curve c0\".*l7 -7 7 7-7 7z" p.svg)" = 3 ] && tr "\n" " " <shown | tr -s " " | grep -q "hollow marks: geometric mean over the other dimensions, by a model of [0-9]* results of [0-9]* entities; bar: its 95 % interval"'
is "a grid has no line" eval 'plot grid.yaml --property speed --x a && [ "$(bands)" = 0 ] && "$samples" plot grid.yaml --property speed --x a --output-format csv >got && ! grep -q line_over got'
plot two.yaml --property speed --x a
# speed is a + b / 100, so the points over a nearly lie on a line: the pixels are as far apart as the values
is "... true ones" eval 'sed -n "s/.*<circle[^>]*cx=\"\([0-9.]*\)\" cy=\"\([0-9.]*\)\".*data-row.*/\1 \2/p" p.svg | awk "{ n++; x += \$1; y += \$2; xx += \$1 * \$1; yy += \$2 * \$2; xy += \$1 * \$2 } END { r = (n * xy - x * y) / sqrt((n * xx - x * x) * (n * yy - y * y)); exit !(n == 20 && r < -0.9999) }"'

# ---- facets ----
is "a heat map for each value of a third dimension" eval 'plot grid.yaml --property speed --facet kind && [ "$(grep -c ">kind plain<\|>kind odd<" p.svg)" = 2 ] && [ "$(grep -c "class=.ink title" p.svg)" = 1 ]'
is "... in the terminal" eval 'grep -q "^ *speed, 1/s, kind plain$" shown && grep -q "^ *speed, 1/s, kind odd$" shown'
ticks() { grep -o "class=\"note\"[^>]*text-anchor=\"$1\"[^>]*>[0-9.]*<" p.svg | sed "s/.*>\(.*\)</\1/" | sort | uniq -c | awk '{ n++; odd += $1 != 2 } END { exit !(n > 1 && !odd) }'; } # each label stands in both
is "... with one key of colours" eval 'plot grid.yaml --property speed --facet kind && [ "$(grep -o "<rect class=.q31. [^>]*width=.14." p.svg | wc -l)" = 1 ]'
is "curves for each value, on one axis" eval 'plot grid.yaml --property speed --x a --series b --facet kind && joined && ticks end'
is "points for each value" eval 'plot grid.yaml --property speed --x bytes --facet kind && [ "$(grep -o "<circle" p.svg | wc -l)" = 12 ] && ! joined'
is "parallel coordinates for each value, with one scale of the target" eval '"$sweep" four.yaml | grep -q "12 valid" && plot four.yaml --property speed --facet kind && [ "$(grep -c "speed, kind" p.svg)" = 2 ] && grep -q "^a  *1  *2 " shown'
refused "a facet that is on an axis" 2 "--facet and --x are the same dimension" "$samples" plot grid.yaml --property speed --x a --facet a
refused "... that makes curves" 2 "--facet and --series are the same dimension" "$samples" plot grid.yaml --property speed --x a --series b --facet b
refused "... that is none" 2 "there is no dimension c" "$samples" plot grid.yaml --property speed --facet c
finish
