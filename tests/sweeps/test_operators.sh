#!/bin/sh
# test_operators.sh - sweep --operation with operators of ado that do not run here: the command that comes closest, and what it leaves out.
. tests/tap.sh
cd "$tmp" || exit 1
sweep=$BUILD/sweep
. "$here/tests/slurm/sweep_work.sh"
space s.yaml 1 2
# answer TEXT FILE - sweep refuses the operation in the file, with this text.
answer() { printf "$2" >o.yaml; refused "$1" 2 "$1" "$sweep" s.yaml --experiments work.json --store st --operation o.yaml; }
ray() { printf 'operation:\\n  module: {operatorName: ray_tune, operationType: search}\\n  parameters:\\n    tuneConfig: {metric: cost, %ssearch_alg: {name: %s}}\\n' "$2" "$1"; } # SEARCHER OTHERS
stop() { printf '%s    runtimeConfig: {stop: [{name: %s, keywordParams: {%s}}]}\\n' "$(ray optuna 'num_samples: 90, ')" "$1" "$2"; }
other() { printf 'operation:\\n  module: {operatorName: %s}\\n  parameters: {%s}\\n' "$1" "$2"; }
own="sweep s.yaml --experiments work.json --store st" st="s.yaml --store st"

answer "o.yaml:2:26: the operator ray_tune, a search by Ray Tune, is not part of tune.c, and nothing else runs under its name; what comes closest, type: $own --order model --minimize cost --entities 60 --in-flight 4 --time-limit 900" "$(ray optuna 'num_samples: 60, max_concurrent_trials: 4, time_budget_s: 900, ')"
answer "; without tuneConfig.verbose, params.gamma; what comes closest, type: $own --order model --maximize cost --entities 9 --seed 7" "$(ray 'hyperopt, params: {random_state_seed: 7, gamma: 0.3}' 'mode: max, num_samples: 9, verbose: 1, ')"
answer "; without metric; what comes closest, type: $own --order sobol --entities 30" "$(ray lhu_sampler 'num_samples: 30, ')"
answer "--order random --entities 1" "$(ray variant_generator '')"
answer "--order model --minimize a --maximize b --entities 5 --remeasure" 'operation:\n  module: {operatorName: ray_tune}\n  parameters: {tuneConfig: {metric: [e-v1-a, b], mode: [min, max], num_samples: 5, search_alg: {name: optuna}}, orchestratorConfig: {metric_format: observed, single_measurement_per_property: false}}\n'
answer "--minimize cost --entities 40" "$(stop MaxSamplesStopper 'max_samples: 40')"
answer "; without SimpleStopper.count_nan; " "$(stop SimpleStopper 'min_trials: 12, count_nan: true')"
answer "--entities 90 --stop-when 'no gain of 1 % in 12'" "$(stop SimpleStopper 'min_trials: 12')"
answer "--stop-when 'no gain of 1 % in 8'" "$(stop GrowthStopper 'growth_threshold: 2.5, grace_trials: 8')"
answer "--stop-when 'chance of 1 % below 5 %'" "$(stop InformationGainStopper '')"
answer "; without stopper BayesianMetricDifferenceStopper; " "$(stop BayesianMetricDifferenceStopper '')"
answer "ray_tune has no searcher optunna (the nearest is optuna)" "$(ray optunna '')"
answer "mode must be min or max, not best" "$(ray ax 'mode: best, ')"
answer "ray_tune needs tuneConfig" 'operation: {module: {operatorName: ray_tune}}\n'
answer "a model by AutoGluon, is not part of tune.c, and nothing else runs under its name; without iterationSize, samplingBudget.minPoints; what comes closest, type: $own --order sobol --entities 25 && samples predict $st --property cost" "$(other trim 'targetOutput: cost, samplingBudget: {minPoints: 9, maxPoints: 25}, iterationSize: 5')"
answer "--order sobol --entities 40 && samples predict" "$(other trim 'targetOutput: cost')"
answer "targetOutput" "$(other trim '')"
answer "--order sobol --entities 40 && samples predict" "$(other TRIM 'targetOutput: cost')"
answer "o.yaml:2:25: the operator RayTune, a search by Ray Tune, is not part of tune.c" "$(ray optuna '' | sed 's/operatorName: ray_tune/moduleClass: RayTune/')"
answer "operators of Python modules (Mine) cannot be run here" 'operation: {module: {moduleClass: Mine, moduleName: mine}}\n'
answer "--order random --entities 20 --in-flight 2 && samples predict $st --property cost" "$(other no_priors_characterization 'targetOutput: cost, samples: 20, batchSize: 2, sampling_strategy: random')"
answer "--order sobol --entities 8 && samples predict" "$(other pkh 'targetOutput: cost, numberEntities: 8')"
answer "without min_mi_threshold; what comes closest, type: samples effect $st --property cost" "$(other rifferla 'metric: cost, min_mi_threshold: 0.8')"
answer "type: samples show $st" "$(other profile '')"
is "nothing was measured or stored" eval '[ ! -e st ] && [ ! -e log ]'
finish
