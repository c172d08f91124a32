#!/bin/sh
# test_export.sh - `runs export`: files for spreadsheets, TensorBoard and trackio. tests/peers/runs_export_peer.py reads them
# by the packages themselves.
. tests/tap.sh
data=$here/datasets/stories.jsonl
cd "$tmp" || exit 1
runs=$BUILD/runs
tiny model 1 >/dev/null
train() { # NAME OPTION...
    out=$1
    shift
    "$BUILD/finetune_full" --model model --dataset "$data" --max-length 32 --threads 1 --train-split 0.9 --eval-every 4 --output "runs/$out" "$@" >"$out.out" 2>&1 || { cat "$out.out"; false; }
}
# run NAME LINE... - a run folder by hand.
run() {
    mkdir -p "$1" && echo '{"program":"mine","status":"finished","started":"2026-11-26T10:00:00Z"}' >"$1/run.json" && folder=$1 && shift && printf '%s\n' "$@" >"$folder/metrics.jsonl"
}
refused "no run at all" 1 "nothing to export" "$runs" export --output out
is "a run" train first --max-steps 6 --logger csv
is "csv is what --logger csv writes, without empty columns" eval '"$runs" export first --output out && cat out/first.csv && [ "$(wc -l <out/first.csv)" = "$(wc -l <runs/first/metrics.csv)" ]'
field() { awk -F, -v name="$2" -v row="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR == row + 1 { print $c }' "$1"; }
same_fields() {
    [ "$(head -n 1 out/first.csv | cut -d, -f1)" = step ] || return 1
    for column in $(head -n 1 out/first.csv | tr , ' '); do
        for row in $(seq "$(($(wc -l <out/first.csv) - 1))"); do
            [ "$(field out/first.csv $column $row)" = "$(field runs/first/metrics.csv $column $row)" ] || { echo "$column of row $row"; return 1; }
        done
    done
}
is "... the same text in each field" same_fields
cp out/first.csv was
refused "what is there is not replaced" 2 "out/first.csv is there already; give another --output, or --overwrite" "$runs" export first --output out
is "... with --overwrite it is" eval 'echo old >out/first.csv && "$runs" export first --output out --overwrite && cmp was out/first.csv'
run runs/odd '{"loss": 1.5, "step": 1, "a,b": 2, "note": "text", "gone": null}' '{"step": 1, "eval_loss": 1e-7}' '{"step": 2, "loss": 1e3}'
is "what is no number is left out, and said" eval '"$runs" export odd --output out >a && grep -qx "# odd: 2 members of its lines are no numbers, and were left out" a && grep -qx "odd: 3 lines of 3 metrics: out/odd.csv" a'
printf 'step,loss,"a,b",eval_loss\n1,1.5,2,\n1,,,1e-7\n2,1e3,,\n' >want
is "... step comes first, and names are quoted" diff want out/odd.csv
cp -r runs/odd runs/torn && printf '{"step":3,"lo' >>runs/torn/metrics.jsonl
is "half a line is left out, and said" eval '"$runs" export torn --output torn >a && grep -q "^# torn: the last line of its metrics is half a line" a && cmp torn/torn.csv want'
run runs/none && : >runs/none/metrics.jsonl
is "a run without lines has no file" eval '"$runs" export none odd --output some >a && grep -q "^none: no line of metrics yet; nothing was written" a && [ "$(ls some)" = odd.csv ]'
run runs/without && rm runs/without/metrics.jsonl
is "... nor one without metrics.jsonl" eval '"$runs" export without odd --output fewer >a && grep -q "^without: no line of metrics yet; nothing was written" a && [ "$(ls fewer)" = odd.csv ]'
refused "unless there is no other" 1 "there is nothing to export: no run has a line of metrics" "$runs" export none --output other
run runs/bad '{"step": 1, "loss": 2}' nonsense
refused "a bad line is an error" 1 "runs/bad/metrics.jsonl:2:1" "$runs" export first bad --output new
is "... before anything is written" [ ! -e new ]
refused "without --output" 2 "where to? Give a folder with --output" "$runs" export first
refused "an option of another command" 2 "--format does not go with list; it is for: export" "$runs" list --format csv
refused "a format that is none" 2 "expected one of csv|tensorboard|trackio" "$runs" export first --format wandb --output out
mkdir other && cp -r runs/odd other/first
is "two runs of one name keep their paths" eval '"$runs" export runs/first other/first --output both && [ "$(ls both | paste -sd,)" = other-first.csv,runs-first.csv ]'
refused "a run that is named twice" 2 "runs/first and runs/first would both be both/runs-first.csv" "$runs" export first first --output both --overwrite
is "--where chooses" eval '"$runs" export --state finished --where "step > 5" --output chosen >a && [ "$(ls chosen)" = first.csv ]'

# ---- TensorBoard ----
is "an event file for each run" eval '"$runs" export first odd --format tensorboard --output board && [ "$(ls board | paste -sd,)" = first,odd ] && ls board/first/events.out.tfevents.*'
refused "what is there is not replaced" 2 "board/first is there already" "$runs" export first --format tensorboard --output board
is "... with --overwrite it is, and one file is there" eval '"$runs" export first --format tensorboard --output board --overwrite && [ "$(ls board/first | wc -l)" = 1 ]'
echo mine >board/first/notes.txt
refused "... but no folder with other files" 2 "board/first is not what an export writes" "$runs" export first --format tensorboard --output board --overwrite
is "... which stays" [ "$(cat board/first/notes.txt)" = mine ]
refused "a run folder is none" 2 "runs/first is not what an export writes" "$runs" export first --format tensorboard --output runs --overwrite

# ---- trackio ----
run runs/long '{"step": 1, "loss": 1, "eval_perplexity": 2, "eval_perplexing": 3, "grad_norm": 4, "timestamp": 5, "_": 6, "elapsed_s": 1.25}' '{"step": 2, "loss": 2, "elapsed_s": 2.5}'
is "trackio: names as it keeps them, each once" eval '"$runs" export long --format trackio --output track >a && head -n 1 track/long.csv >names && cat names && grep -qx "step,timestamp,loss,evalperple,evalperpl2,gradnorm,timestamp2,col,elapseds" names'
is "... and said" grep -qx '# trackio keeps ten letters and digits of a name: eval_perplexity is evalperple, eval_perplexing is evalperpl2, grad_norm is gradnorm, timestamp is timestamp2, _ is col, elapsed_s is elapseds' a
is "... times: the start and the seconds of the steps" eval 'cut -d, -f1,2 track/long.csv | paste -sd" " >times; cat times; grep -qFx "step,timestamp 1,2026-11-26T10:00:01.250000+00:00 2,2026-11-26T10:00:02.500000+00:00" times'
echo '{"program":"mine","status":"finished","started":"2026-11-26T10:00:00Z","sessions":[{"started":"2026-11-26T10:00:00Z","from_step":0},{"started":"2026-11-27T10:00:00Z","from_step":1}]}' >runs/long/run.json
is "... of the session that made the step" eval '"$runs" export long --format trackio --output track --overwrite && cut -d, -f1,2 track/long.csv | paste -sd" " | grep -qFx "step,timestamp 1,2026-11-26T10:00:01.250000+00:00 2,2026-11-27T10:00:01.250000+00:00"'
echo '{"program":"mine","status":"finished"}' >runs/long/run.json
is "... a run that does not say when it began has none" eval '"$runs" export long --format trackio --output track --overwrite >a && grep -q "^# long: its folder does not tell when it began, so it has no times" a && grep -q "^2,,2,,,,,,2.5$" track/long.csv'
finish
