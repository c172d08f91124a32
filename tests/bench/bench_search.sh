#!/bin/sh
# bench_search.sh [SEEDS] - measurements of three synthetic costs until one is within 1 % of the best: the median of SEEDS searches
# (40 if not given), by random and sobol order, by sweep --order model, and by Optuna's multivariate TPE if PYTHON names a Python
# with tests/requirements-search.txt. Then the best value after 30, 60 and 100 measurements, as a share of the best there is. A
# measurement has 2 % noise; whether it is within 1 % is decided without. Then the best after 20 and 30 in a space that was measured
# (measured_space.sh), 20 searches. Last, how many fresh points the models' intervals hold, mean of 20 seeds.
BUILD=${BUILD:-build}
seeds=${1:-40} python=${PYTHON:-python3} search=$BUILD/tests/helpers/model_search
export OPENBLAS_NUM_THREADS=1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
middle() { sed 's/^-$/inf/' | awk '{ print $1 == "inf" ? 1e9 : $1 }' | sort -n | awk '{ a[NR] = $1 } END { m = (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2; print m >= 1e8 ? "none" : m }'; }
optuna() { # COST
    "$search" "$1" table >"$tmp/table" && "$python" - "$tmp/table" "$seeds" <<'PYTHON'
import csv, random, sys, warnings
import optuna
warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
cost = {tuple(row[:-1]): float(row[-1]) for row in csv.reader(open(sys.argv[1]))}
best = max(cost.values())
values = [sorted(set(column), key=lambda v: (not v.isdigit(), int(v) if v.isdigit() else v)) for column in zip(*cost)]
for seed in range(int(sys.argv[2])):
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True))
    noise, n = random.Random(seed), 0
    while n < 600:
        trial = study.ask()
        point = tuple(v[trial.suggest_int(str(k), 0, len(v) - 1)] if v[0].isdigit() else trial.suggest_categorical(str(k), v)
                      for k, v in enumerate(values))
        n += 1  # TPE asks for the same point again and again: each time counts
        if cost[point] >= 0.99 * best:
            break
        study.tell(trial, cost[point] * (1 + 0.02 * noise.gauss(0, 1)))
    print("-" if n >= 600 else n, flush=True)
PYTHON
}
printf '%-12s %8s %8s %8s %8s\n' cost random sobol model Optuna
for cost in fine_tuning blocking knobs; do
    printf '%-12s' $cost
    for order in random sobol; do printf ' %8s' "$("$search" $cost $order 0 "$seeds" 65856 | middle)"; done
    "$search" $cost model 0 "$seeds" 600 | middle >"$tmp/$cost"
    printf ' %8s' "$(cat "$tmp/$cost")"
    if "$python" -c 'import optuna' 2>/dev/null; then printf ' %8s\n' "$(optuna $cost | middle)"; else printf ' %8s\n' -; fi
done
cat "$tmp/fine_tuning" "$tmp/blocking" "$tmp/knobs" | awk '{ s += log($1) } END { printf "geometric mean of the model'"'"'s medians: %.1f (the bar is 73)\n", exp(s / NR) }'
for cost in fine_tuning blocking knobs; do
    for order in sobol model; do
        printf '%-12s %-6s best of the first 30, 60, 100:' $cost $order
        for n in 30 60 100; do printf ' %.3f' "$("$search" $cost $order 0 "$seeds" "-$n" | middle)"; done
        echo
    done
done
for order in random sobol model; do
    printf '%-12s %-6s best of the first 20, 30:' measured $order
    for n in 20 30; do printf ' %.3f' "$("$search" measured $order 0 20 "-$n" | middle)"; done
    echo
done
for cost in fine_tuning blocking knobs; do
    for rows in 40 100; do
        "$search" $cost coverage 0 20 $rows | awk -v c=$cost -v r=$rows '{ s += $1 } END { printf "%-12s fresh points in the 95 %% interval of a model of %d rows: %.1f %%\n", c, r, 100 * s / NR }'
    done
done
