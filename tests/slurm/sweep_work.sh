# sweep_work.sh - what the tests of launchers share: an experiment, spaces of it, and questions about stores. Sourced, in the test's
# folder.
cat >work.sh <<'E2'
#!/bin/sh
echo "$TUNE_INPUT_A" >>"$TUNE_INPUT_LOG"
case $TUNE_INPUT_HOW in
fail) echo "it cannot be" >&2; exit 7 ;;
esac
sleep "$TUNE_INPUT_SECONDS"
echo "{\"t\": $TUNE_INPUT_A}" >"$TUNE_OUTPUT/report.json"
E2
chmod +x work.sh
cat >work.json <<E2
{"identifier": "work", "actuator": "custom_experiments", "program": "./work.sh", "output": null,
 "inputs": [{"identifier": "a", "required": true, "domain": {"domainRange": [0, 100000], "interval": 1}},
  {"identifier": "seconds", "default": 0.0, "domain": {"domainRange": [0, 1000]}},
  {"identifier": "how", "default": "fine", "domain": {"values": ["fine", "fail"]}},
  {"identifier": "log", "default": "$tmp/log", "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}],
 "rules": [{"require": "a != 13", "reason": "thirteen"}],
 "targets": [{"identifier": "t"}]}
E2
# space FILE LOW HIGH [SECONDS [HOW]] - of the points from LOW to below HIGH
space() {
    cat >"$1" <<E2
entitySpace: [{identifier: a, propertyDomain: {domainRange: [$2, $3], interval: 1}}]
experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work, parameterization: [
  {property: {identifier: seconds}, value: ${4:-0.001}}${5:+, {property: {identifier: how\}, value: $5\}}]}]
E2
}
rows() { "$samples" show custom_experiments.work --experiments work.json --store "$1" --columns "$2" --output-format csv | tail -n +2; }
# whole STORE LOW HIGH - the store is sound and has each point once.
whole() { "$samples" check --store "$1" && rows "$1" a | sort -n >"$tmp/got" && seq "$2" $(($3 - 1)) | diff - "$tmp/got"; }
