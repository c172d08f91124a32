# ranks.sh - for tests of recipes on ranks: a model, rows, and the figures of runs. Sourced from the folder $tmp.
full=$BUILD/finetune_full
mpi_here || { skip "recipes on ranks" "no mpirun, or no tune_mpi.so (Debian: libopenmpi-dev openmpi-bin)"; finish; }
# 52 rows, some of which have nothing to train on: each prompt but the last few has an answer.
awk 'function r() { x = x * 16807 % 2147483647; return x / 2147483647 } BEGIN { x = 4; for (i = 0; i < 52; i++) { a = ""; n = i % 9 ? 1 + int(12 * r()) : 40; for (k = 0; k < n; k++) a = a " word" int(30 * r());
    printf "{\"prompt\": \"Say %d\", \"completion\": \"%s\"}\n", i, a } }' >rows.jsonl
awk 'BEGIN { srand(5); for (i = 0; i < 27; i++) printf "{\"prompt\": \"Say %d:\", \"chosen\": \" %d is good\", \"rejected\": \" %d is bad, and long\"}\n",
    i, 90 * rand(), 70 * rand() }' >pairs.jsonl
tiny model 1 --dtype float32 >/dev/null
rows="--model model --dataset rows.jsonl --max-length 40 --batch-size 3 --lr 3e-3 --train-split 0.8 --eval-every 2 --seed 31 --threads 1"
pairs="--model model --dataset pairs.jsonl --max-length 64 --batch-size 2 --lr 3e-3 --train-split 0.8 --eval-every 2 --seed 31 --threads 1"

if ! "$full" $rows --ranks 2 --max-steps 1 --output try >try.out 2>&1 && ! grep -q '^finetune_full: ' try.out; then
    skip "recipes on ranks" "mpirun does not work here: $(grep -v '^ *$\|^--*$' try.out | head -n 1)"
    finish
fi

# Loss, norm, rewards and evaluations of each step, as "step name value".
figures() {
    tr ',{}' '\n\n\n' <"$1/metrics.jsonl" | sed 's/"//g' | awk -F: '$1 == "step" { step = $2 } $1 ~ /^(loss|grad_norm|eval_loss|lr|epoch|rewards\/.*|kl)$/ { print step, $1, $2 }
        $1 ~ /^(rows|tokens|padded_tokens|labels)$/ { print step, $1, $2 }'
}
# agree A B - the same figures: counts exactly, the first loss within 1e-6, all others within 1e-5.
agree() {
    figures "$1" >a.txt
    figures "$2" >b.txt
    [ "$(wc -l <a.txt)" -gt 8 ] && [ "$(wc -l <a.txt)" = "$(wc -l <b.txt)" ] || { diff a.txt b.txt; return 1; }
    paste a.txt b.txt | awk '{ exact = $2 ~ /rows|tokens|labels/; d = $3 - $6; most = ($3 < 0 ? -$3 : $3) * ($1 == 1 && $2 == "loss" ? 1e-6 : 1e-5) + 1e-6 }
        $1 != $4 || $2 != $5 || (exact && d != 0) || d > most || d < -most { print; bad = 1 } END { exit bad }'
}
