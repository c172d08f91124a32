#!/bin/sh
# test_parquet.sh - build/samples writes Parquet: by the ending of the file, into a pipe; not to a terminal, not half.
. tests/tap.sh
cd "$tmp" || exit 1
samples=$BUILD/samples
printf 'a,speed\n1,10\n2,"[30, 32]"\n3,20\n' >rows.csv
cat >space.yaml <<'E2'
entitySpace: [{identifier: a, propertyDomain: {values: [1, 2, 3, 4]}}]
experiments: [{actuatorIdentifier: replay, experimentIdentifier: made}]
E2
is "a store of three points" "$samples" import csv rows.csv --experiment made --inputs a --property speed --store st
whole() { [ "$(head -c 4 "$1")" = PAR1 ] && [ "$(tail -c 4 "$1")" = PAR1 ]; } # FILE
for command in "show made" export status "missing space.yaml" "best space.yaml --include matching --maximize speed" "plot space.yaml --include matching --x a --property speed"; do
    is "$command" eval '"$samples" $command --store st --output-file x.parquet && whole x.parquet && rm x.parquet'
done
is "the same bytes into a pipe" eval '"$samples" export --store st --output-format parquet | cat >piped && "$samples" export --store st --output-file x.parquet && cmp piped x.parquet'
is "--output-format says more than the ending" eval '"$samples" export --store st --output-format csv --output-file csv.parquet && head -n 1 csv.parquet | grep -q "^uid,"'
if command -v script >/dev/null 2>&1; then
    terminal() { script -qec "$samples export --store st --output-format parquet $*" /dev/null </dev/null >shown; }
    is "a terminal is not written to, and the message says what to type" eval '! terminal && grep -qF "a terminal cannot show parquet; write a file: --output-file export.parquet" shown && ! grep -q PAR1 shown'
    is "... a file is, from a terminal, too" eval 'rm -f y.parquet && terminal --output-file y.parquet && cmp piped y.parquet'
else
    skip "a terminal" "no script"
fi
if [ -e /dev/full ]; then
    refused "a full disk" 1 "the answer cannot be written: " "$samples" export --store st --output-format parquet --output-file /dev/full
else
    skip "a full disk" "no /dev/full"
fi
is "an empty store has nothing for it, and the file of before stays" eval 'cp piped z.parquet && printf "{\"id\": \"0a1b2c\", \"schema_version\": 1}" >none.json && mkdir none && mv none.json none/store.json &&
    ! "$samples" export --store none --output-file z.parquet 2>said.err && grep -q "there is nothing to write: the answer has no column" said.err && cmp piped z.parquet'
finish
