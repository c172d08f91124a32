#!/bin/sh
# test_runs.sh - build/runs over real run folders: finished ones, a live one, a killed one, broken ones; its formats and plots.
. tests/tap.sh
PYTHON=${TUNE_PYTHON:-python3}
data=$here/datasets/stories.jsonl
cd "$tmp" || exit 1
unset COLUMNS NO_COLOR
runs=$BUILD/runs
tiny model 1 >/dev/null
train() { # NAME OPTION...
    out=$1
    shift
    "$BUILD/finetune_full" --model model --dataset "$data" --max-length 48 --threads 1 --log-every 100 --train-split 0.95 \
        --output "runs/$out" "$@" >"$out.out" 2>&1 || { cat "$out.out"; false; }
}
shows() { # TEXT COMMAND... - the command succeeds and prints a line that matches
    text=$1
    shift
    "$@" >"$tmp/shown" 2>&1 && grep -qE -e "$text" "$tmp/shown" || { cat "$tmp/shown"; false; }
}

is "no runs yet: said, not an error" shows '^# no runs in runs/' "$runs" list
is "a run" train slow --lr 1e-4 --max-steps 40 --eval-every 10
was=$(date +%s) && await 0 eval '[ "$(date +%s)" != "$was" ]' # run.json tells the start to the second
is "and another" train "fast and long" --lr 3e-3 --max-steps 60 --eval-every 10
is "list: state, steps and the options in which they differ" shows '^slow +finetune_full +finished +40/40 +[0-9.]+ +[0-9.]+ .*lr=0\.0001 max_steps=40$' "$runs" list
is "in order of their start" eval '"$runs" list >a && sed -n 2p a | grep -q "^slow" && sed -n 3p a | grep -q "^fast and long  "'
is "by loss, reversed" eval '"$runs" list --sort loss --reverse >a && sed -n 2p a | grep -q "^slow"'
if sanitized; then
    skip "a qsort that moves the rows" "a sanitizer must be loaded first"
else
    cat >qsort.c <<'E2'
#include <stddef.h>
void qsort(void *base, size_t count, size_t size, int (*order)(const void *, const void *))
{
    for (size_t i = 1; i < count; i++)
        for (char *b = (char *)base + i * size; b > (char *)base && order(b - size, b) > 0; b -= size)
            for (size_t k = 0; k < size; k++) {
                char c = b[k];
                b[k] = b[k - size], b[k - size] = c;
            }
}
E2
    cp -r runs/slow runs/third && sed -i 's/"started":[^,]*/"started": "2001-01-01T00:00:00Z"/' runs/third/run.json
    is "a qsort that moves the rows gives the same order" eval '$CC -shared -fPIC -o qsort.so qsort.c && "$runs" list >a && LD_PRELOAD="$tmp/qsort.so" "$runs" list >b && diff a b && sed -n 2p b | grep -q "^third"'
    rm -r runs/third
fi
is "only in some states" eval '"$runs" list --state failed,dead >a && test $(wc -l <a) = 2 && grep -qx "# 0 of 2 runs" a'
refused "a state that is none" 2 '"slow" is no state' "$runs" list --state finished,slow
is "compare: figures and the options that differ, nothing else" eval '"$runs" compare slow "fast and long" >a && grep -qE "^lr +0.0001 +0.003$" a && grep -qE "^step +steps +40 +60$" a && grep -qE "^train_runtime +s +[0-9]" a && ! grep -q "batch_size" a && [ "$(grep -c "^eval_loss " a)" = 1 ]'
is "... what is equal in all stands below" eval 'grep -q "^# equal in all: .*is_valid 1" a && ! grep -q "^is_valid" a'
is "show: options and where each came from, checkpoints" eval '"$runs" show slow >a && grep -qE "^  lr +0\.0001  \(flag\)$" a && grep -qE "^  checkpoint-40 .* MB, best, final$" a && grep -qE "^  training_steps +40 steps$" a'

# ---- which ones, and in which order ----
names() { sed -n 's/^\(slow\|fast and long\|pairs\|own\) .*/\1/p' a | paste -sd, -; } # of the rows of the list in a
chosen() { # NAMES OPTION... - runs list with these options has these, in this order
    want=$1 && shift && "$runs" list "$@" >a && [ "$(names)" = "$want" ] || { cat a; return 1; }
}
is "--where: figures, options, texts" chosen "fast and long" --where 'lr > 1e-3 and step >= 40 and name != "slow"'
is "... metrics, numbers of the reports" chosen "slow,fast and long" --where 'grad_norm > 0 and training_steps in [40, 60]'
is "... how many of all" eval '"$runs" list --where "lr > 1e-3" >a && tail -n 1 a | grep -qx "# 1 of 2 runs"'
refused "... a name that no run has" 2 'unknown name "lrr"' "$runs" list --where 'lrr > 1'
is "--program" chosen "" --program finetune_lora,finetune_dpo
is "--since: a date, days, today" eval 'chosen "slow,fast and long" --since 2020-01-01 && chosen "slow,fast and long" --since 2d && chosen "" --since "2099-01-01 10:00"'
refused "... a day that is in no calendar" 2 '"2026-02-31" is no time' "$runs" list --since 2026-02-31
refused "... what is no time" 2 '"soon" is no time; expected 30m, 12h' "$runs" list --since soon
is "--sort by an option" chosen "fast and long,slow" --sort lr --reverse
is "... by a metric, which becomes a column" eval 'chosen "slow,fast and long" --sort epoch && head -n 1 a | grep -qE "took +epoch +options"'
refused "... by a name that no run has" 2 'no run has "losss" (the nearest is loss)' "$runs" list --sort losss
cp -r runs/slow runs/own && sed -i 's/"clip_norm":[^,]*/"clip_norm": "inf"/' runs/own/run.json
is "an infinite option is a number" eval 'chosen "own" --where "clip_norm > 9" && chosen "slow,fast and long" --where "clip_norm < 9" && chosen "own" --sort clip_norm --where "clip_norm > 9" && grep -qE "  +inf$" a'
rm -r runs/own
refused "an option for another command" 2 "--sort does not go with compare; it is for: list" "$runs" compare --sort loss
refused "no run that meets it, but in a list" 1 "none of 2 runs meets" "$runs" show slow "fast and long" --where 'lr > 1'
cp -r runs/slow runs/pairs && sed -i 's|"loss_last":[^,]*|"loss_last": "nats/pair"|' runs/pairs/run.json && sed -i 's/"loss":[0-9.e-]*/"loss":0.01/' runs/pairs/metrics.jsonl
is "losses per pair are not sorted among losses per token" eval 'chosen "fast and long,slow,pairs" --sort loss && grep -q "^# loss has several units here, which are sorted apart: nats/token, then nats/pair" a'
is "... two plots, each with its unit" eval '"$runs" plot slow pairs --metric loss >a && grep -q "nats/token" a && grep -q "nats/pair" a'
is "... compare has both units" eval '"$runs" compare slow pairs >a && grep -qE "^loss +nats/token, nats/pair" a'
sed -i '/"units"/,/}/d' runs/pairs/run.json && sed -i 's/"options":[^{]*{/"options": { "beta": 0.1,/' runs/pairs/run.json
is "... of a run whose run.json has no units" eval '"$runs" plot pairs --metric loss >a && grep -q "nats/pair" a'
rm -r runs/pairs
fits() { # WIDTH COMMAND... - its lines fit, and every loss is whole
    most=$1 && shift && "$runs" "$@" --width $most --ascii >a && widest $most <a && grep -qE " $loss( |\$)" a || { cat a; return 1; }
}
widest() { awk -v most="$1" 'length > most && !/^#/ { print; bad = 1 } END { exit bad }'; }
cp -r runs/slow "runs/a run of somebody who gives his runs very long names" && sed -i "s|$data|/home/somebody/a/very/long/path/to/the/sets/of/others/rows.jsonl|" runs/a*/run.json
loss=$("$runs" list slow --output-format csv | awk -F, 'NR == 2 { printf "%.4f", $8 }')
for width in 60 80 120 200; do
    is "list in $width columns has each loss whole" fits $width list
    is "... compare too" eval 'loss=${loss%??}[0-9]*; fits $width compare'
done
is "a long path is shortened to where it differs, or stands on a line of its own" eval '"$runs" list --width 80 >a && grep -qE "^    .*dataset=.*rows.jsonl" a'
rm -r runs/a*

# A machine without a GPU reports gpu_power_watts_avg 0; a GPU's run of another day does not.
is "no rows of a GPU that is not there" eval 'grep -q gpu_power runs/slow/report.json && ! grep -q gpu a && "$runs" compare slow "fast and long" >a && ! grep -q gpu a'
cp -r runs/slow runs/gpu && sed -i 's|"device":.*|"device": "cuda",|' runs/gpu/run.json
is "one that is there has rows, in its own column" eval '"$runs" show gpu >a && grep -qE "^  gpu_power_watts_avg +0 W$" a && "$runs" compare slow gpu --output-format csv >a && grep -qE "^report,gpu_power_watts_avg,W,,0" a'
rm -r runs/gpu
is "a run with another option" train clipped --lr 1e-4 --max-steps 40 --clip-norm 2 --no-save
is "list: options at their defaults are left out" eval '"$runs" list >a && grep -qE "^clipped .*[ =0-9]clip_norm=2( |$)" a && ! grep -qE "^slow .*clip_norm" a'
is "also those of a run that was gone on with" eval 'sed -i "s/\"clip_norm\":[[:space:]]*\"default\"/\"clip_norm\": \"run\"/" "runs/fast and long/run.json" && grep -q "\"clip_norm\": \"run\"" "runs/fast and long/run.json" && "$runs" list >a && ! grep -qE "^(slow|fast).*clip_norm" a'
rm -r runs/clipped

# ---- alive, killed, broken ----
"$BUILD/finetune_full" --model model --dataset "$data" --max-length 48 --threads 1 --epochs 100000 --output runs/live >/dev/null 2>&1 &
pid=$!
await $pid [ -s runs/live/metrics.jsonl ]
is "a live one is running" shows '^live +finetune_full +running +[0-9]+/' "$runs" list
is "watch --once shows it, and nothing that has ended" eval '"$runs" watch --once >a && grep -qE "^live +running +step +[0-9]+/[0-9]+ +[0-9]+%  ETA [0-9:]+  [0-9]+ tokens/s  finetune_full$" a && grep -qE "^  loss [0-9.]+ " a && ! grep -q slow a'
huge() { # numbers that overflow when they are added or subtracted: no command minds
    mkdir -p runs/huge && cp runs/live/run.json runs/huge && for i in $(seq 6); do echo "{\"step\": $i, \"loss\": $([ $((i % 2)) = 0 ] || echo -)1e308, \"elapsed_s\": $i}"; done >runs/huge/metrics.jsonl &&
        flock -x runs/huge/metrics.jsonl "$runs" watch --once huge >a && grep -q "^huge  *running" a || { cat a; return 1; }
    for command in list "show huge" "compare huge slow" "watch --once huge"; do "$runs" $command >a 2>&1 || { echo "$command: $?"; return 1; }; done
    "$runs" list | grep -q "^huge .* 1e+308 " && ! "$runs" plot huge >a 2>&1 && grep -q "not one point to draw; those above 1e300 are left out" a || { cat a; return 1; }
    rm -r runs/huge
}
is "losses of 1e308 and -1e308 in turn are shown" huge
widest() { awk -v most="$1" 'length > most { print; bad = 1 } END { exit bad }'; }
narrow() { for w in 1 2 5 9 20 33 47 61 80; do "$runs" watch --once live --ascii --width $w | widest $((w > 1 ? w - 1 : 1)) || return 1; done; }
is "no line is wider than the terminal" narrow
"$runs" watch live --interval 0.2 >watched 2>&1 &
watcher=$!
await $watcher grep "^live | running | step" watched
kill -9 $pid
wait $pid 2>/dev/null
is "a watch of it that is no terminal prints lines, and ends with the run" eval 'wait $watcher && grep -qE "^live \| running \| step +[0-9]+/" watched && tail -n 1 watched | grep -qE "^live \| dead .*no process holds the folder" && ! LC_ALL=C grep -q "$(printf "\033")" watched'
is "killed, it is dead" shows '^live +finetune_full +dead +[0-9]+/' "$runs" list
is "and the list says so below" grep -q '^# live: run.json says it runs, but no process holds the folder' shown
cp -r runs/slow runs/torn && printf '{"step":41,"lo' >>runs/torn/metrics.jsonl
cp -r runs/slow runs/cut && head -c 100 runs/slow/run.json >runs/cut/run.json
mkdir runs/bare runs/odd && echo '{"status":"running"}' >runs/bare/run.json && echo 'x' >runs/odd/notes.txt
printf '{"step":1,"loss":1}\nnonsense\n' >runs/bare/metrics.jsonl
is "broken ones do not end the list" shows '^slow +finetune_full +finished' "$runs" list
is "each says what is wrong" eval 'grep -q "^# torn: metrics.jsonl: its last line is torn" shown && grep -q "^# cut: runs/cut/run.json:[0-9]*:[0-9]*: the JSON ends here" shown && grep -q "^# bare: runs/bare/metrics.jsonl:2:1: " shown'
is "what is no run folder is not among them" eval '! grep -q odd shown'
refused "unless it is named" 1 "neither a run folder" "$runs" list runs/odd
refused "a run that is not there" 2 "no such run" "$runs" show gone
refused "show without a run" 2 "which run" "$runs" show
refused "an unknown command" 2 "expected one of list|show|compare|plot|watch" "$runs" look

# ---- watched live ----
is "watch shows what ended, once" eval '"$runs" watch slow cut >a && grep -qE "^slow \| finished \| step 40/40 \| 100%" a && grep -qE "^cut \| broken .*the JSON ends here" a && test $(wc -l <a) = 2'
is "a signal ends it" eval '"$runs" watch none-yet >a & await $! grep "^none-yet | absent" a && kill -TERM $!; wait $!; test $? = 143'
evaluated() { # EVAL_LOSS... - how watch shows a run with these evaluations
    mkdir -p runs/evals && sed 's/"planned_steps":[^,]*/"planned_steps": 9/' runs/slow/run.json >runs/evals/run.json && : >runs/evals/metrics.jsonl || return 1
    i=0
    for l in "$@"; do i=$((i + 1)) && echo "{\"step\": $i, \"loss\": 3}" && echo "{\"step\": $i, \"eval_loss\": $l}"; done >runs/evals/metrics.jsonl
    "$runs" watch evals
}
is "the best evaluation is shown beside the last" eval 'evaluated 2.5 2.25 2.75 >a && grep -q "| eval 2.7500 at 3 | best 2.2500 at 2 |" a'
is "... unless the last is the best" eval 'evaluated 2.5 2.25 >a && grep -q "| eval 2.2500 at 2 |" a && ! grep -q best a'
rm -r runs/evals
is "where no run is running it waits for one" eval '"$runs" watch --interval 0.2 >a & watcher=$!; await $watcher grep "^# no run in runs/ is running; waiting for one, Ctrl-C ends$" a && train next --max-steps 5 --no-save && wait $watcher && tail -n 1 a | grep -q "^next | finished | step 5/5"'
rm -r runs/next
cat >terminal.py <<'PY'
# terminal.py ROWS COLUMNS TEXT COMMAND... - in a terminal; ^C when it has drawn three times, and the pattern TEXT; its screen's lines, then its
# exit code. With its first picture it makes the file `drawn`.
import fcntl, os, pty, re, select, struct, sys, termios, time
rows, columns, text = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    modes = termios.tcgetattr(0)
    modes[3] |= termios.NOFLSH # else ^C takes back what is drawn and not yet read
    termios.tcsetattr(0, termios.TCSANOW, modes)
    os.environ.update(TERM="xterm", LC_ALL="C")
    os.execv(sys.argv[4], sys.argv[4:])
out, begin, sent, frames = b"", time.time(), False, 0
while True:
    if select.select([fd], [], [], 0.05)[0]:
        try: data = os.read(fd, 65536)
        except OSError: break
        if not data: break
        out += data
    pictures = re.split(rb"\x1b\[\d*A", out)
    if len(pictures) > 1: open("drawn", "w").close()
    if len(pictures) > 3 and re.search(text, pictures[-2], re.S) and not sent:
        os.write(fd, b"\x03")
        sent = True
screen, y, x = [""], 0, 0
for t in re.findall(r"\x1b\[\d*[A-Z]|\r|\n|[^\x1b\r\n]+|\x1b", out.decode("utf-8", "replace")):
    if t == "\n":
        y += 1
        if y == len(screen): screen.append("")
    elif t == "\r": x = 0
    elif t.endswith("A") and t[0] == "\x1b":
        y, frames = y - int(t[2:-1]), frames + 1
        assert y >= 0, "above the screen"
    elif t == "\x1b[K": screen[y] = screen[y][:x]
    elif t == "\x1b[J": del screen[y + 1:]; screen[y] = screen[y][:x]
    else:
        assert t[0] != "\x1b", repr(t)
        screen[y] = screen[y][:x].ljust(x) + t + screen[y][x + len(t):]
        x += len(t)
        assert x < columns, ("wraps", t)
assert len(screen) <= rows, len(screen)
assert frames < 4 + 4 * (time.time() - begin), "two pictures a second"
print("\n".join(screen))
print("frames", frames, "exit", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
cat >writer.py <<'PY'
# writer.py FOLDER FILE - once there is FILE, writes a run as a slow recipe does, each line in two halves, until it is killed
import fcntl, json, os, sys, time
folder = sys.argv[1]
while not os.path.exists(sys.argv[2]): time.sleep(0.02)
os.mkdir(folder)
metrics = open(folder + "/metrics.jsonl", "w")
fcntl.flock(metrics, fcntl.LOCK_EX)
with open(folder + "/run.json.tmp", "w") as f:
    json.dump({"program": "slow", "status": "running", "planned_steps": 1000}, f)
os.rename(folder + "/run.json.tmp", folder + "/run.json")
for step in range(1, 1000000):
    line = json.dumps({"step": step, "loss": 9 / step, "elapsed_s": step / 10, "tokens": 100}) + "\n"
    for half in line[:20], line[20:]:
        metrics.write(half)
        metrics.flush()
        time.sleep(0.05)
PY
$PYTHON writer.py runs/one . & one=$!
$PYTHON writer.py runs/two drawn & two=$!
await $one [ -s runs/one/metrics.jsonl ]
is "in a terminal it draws in place, with a run that begins meanwhile; ^C ends it cleanly" eval 'timeout 300 $PYTHON terminal.py 24 60 "two +running +step.*loss" "$runs" watch >a && grep -qE "^frames ([3-9]|[1-9][0-9]+) exit 130$" a && grep -cE "^(one|two) +running +step" a | grep -qx 2 && test $(wc -l <a) = 6'
is "a small one shows what fits, and how many more there are" eval 'timeout 300 $PYTHON terminal.py 6 40 "# 1 more" "$runs" watch >a && grep -q "^# 1 more; " a && grep -q "exit 130" a'
is "watch of a run that is not there yet waits for it" eval '"$runs" watch late --interval 0.2 >a & watcher=$!; await $watcher grep "^late | absent" a && train late --max-steps 20 --no-save && wait $watcher && head -n 1 a | grep -q "^late | absent" && tail -n 1 a | grep -q "^late | finished | step 20/20"'
kill $one $two; wait $one $two 2>/dev/null
rm -r runs/one runs/two runs/late

# ---- what moves a cursor: ESC, CSI as one character, line breaks; in a name, a reason, an option, a metric, a section ----
wild=$(printf 'w\033[2J\302\233m\nx')
mkdir "$wild" && cat >"$wild/run.json" <<'END'
{"status":"failed","reason":"a\u001b]0;b\u0007\u009bc\n# d","options":{"lr\u001b[1m":"\u001b[31m\ne"},"o\rp":{"q\n":"r\b"}}
END
echo '{"step":1,"loss":1,"loss\u001b[5m":2}' >"$wild/metrics.jsonl"
plain() { "$@" >screen 2>&1; LC_ALL=C grep -q . screen && [ -z "$(LC_ALL=C tr -d '\n -~\200-\377' <screen)" ] && ! LC_ALL=C grep -q "$(printf '\302\233')" screen; }
is "is spelled out by list" eval 'plain "$runs" list "$wild" && test "$(wc -l <screen)" = 3 && grep -qF "# w\x1b[2J\x9bm\nx: a\x1b]0;b\x07\x9bc\n# d" screen'
is "by show" eval 'plain "$runs" show "$wild" && grep -qF "  lr\x1b[1m " screen && grep -qF " \x1b[31m\ne" screen && grep -qF "o\x0dp" screen'
is "by compare" plain "$runs" compare "$wild" slow
is "by plot" plain "$runs" plot "$wild" --ascii --metric "$(printf 'loss\033[5m')"
is "by its complaints" plain "$runs" plot "$wild" --metric none
is "but not to programs" eval '"$runs" list "$wild" --output-format csv | LC_ALL=C grep -q "$(printf "a\033]0;b\007\302\233c")"'

# ---- for programs ----
holds() { $PYTHON - "$@" <<'PY'
import csv, io, json, os, subprocess, sys, xml.dom.minidom
runs = sys.argv[1]
def out(*arguments): return subprocess.run([runs, *arguments], check=True, capture_output=True, text=True).stdout
what = sys.argv[2]
if what == "formats":
    a = json.loads(out("list", "--output-format", "json"))
    b = list(csv.DictReader(io.StringIO(out("list", "--output-format", "csv"), newline="")))
    assert len(a) == len(b) == 6, (len(a), len(b))
    for x, y in zip(a, b):
        for k in x:
            assert y[k] == "" if x[k] is None else float(y[k]) == x[k] if isinstance(x[k], (int, float)) else y[k] == x[k], (k, x, y)
    slow = [x for x in a if x["name"] == "slow"][0]
    last = [json.loads(l) for l in open("runs/slow/metrics.jsonl")]
    assert slow["loss"] == [l for l in last if "loss" in l][-1]["loss"] and slow["eval_loss"] == last[-1]["eval_loss"]
    assert slow["best_eval_loss"] == min(l["eval_loss"] for l in last if "eval_loss" in l)
    steps = [l for l in last if "loss" in l]
    assert abs(slow["tokens_per_s"] / json.load(open("runs/slow/report.json"))["dataset_tokens_per_second"] - 1) < 1e-9
    c = json.loads(out("compare", "slow", "fast and long", "--output-format", "json"))
    lr = [r for r in c if r["what"] == "option" and r["name"] == "lr"]
    assert lr == [{"what": "option", "name": "lr", "unit": None, "slow": "0.0001", "fast and long": "0.003"}], lr
    s = json.loads(out("show", "slow", "--output-format", "json"))
    assert {"run": "slow", "section": "options", "name": "max_steps", "value": 40, "unit": None} in s
    both = json.loads(out("show", "slow", "fast and long", "--output-format", "json"))
    assert [r for r in both if r["run"] == "slow"] == s and {r["run"] for r in both} == {"slow", "fast and long"}
    rows = list(csv.reader(io.StringIO(out("show", "slow", "fast and long", "--output-format", "csv"), newline="")))
    assert rows[0] == ["run", "section", "name", "value", "unit"] and len(rows) == len(both) + 1 and {len(r) for r in rows} == {5}
    assert {"run": "slow", "section": "figures", "name": "step", "value": 40, "unit": "steps"} in s
elif what == "columns":
    for folder, names, keys in [(".", ["what", "name"], ["runs/what", "runs/name"]), (".", ["slow", "slow"], ["runs/slow", "runs/slow (2)"]),
                                ("runs", ["./what", "what", "what/"], ["./what", "what (2)", "what (3)"])]:
        os.chdir(folder)
        for row in json.loads(out("compare", *names, "--output-format", "json")):
            assert list(row) == ["what", "name", "unit"] + keys, (names, row)
            assert row["what"] in ("state", "setting", "option", "figure", "report")
elif what == "svg":
    d = xml.dom.minidom.parse(sys.argv[3])
    paths = [p for p in d.getElementsByTagName("path")]
    assert len(paths) >= 4 and all(p.getAttribute("d").startswith("M") for p in paths), len(paths)
    t = "".join(n.data for e in d.getElementsByTagName("text") for n in e.childNodes if n.nodeType == n.TEXT_NODE)
    assert "loss and eval_loss" in t and "slow loss" in t and "fast and long eval_loss" in t and "step" in t, t
PY
}
is "csv and json hold the same, and what metrics.jsonl holds" holds "$runs" formats
ln -s slow runs/what && ln -s slow runs/name
is "compare: every run has a column of its own, whatever it is called" holds "$runs" columns
rm runs/what runs/name

# ---- plots ----
plot() { "$runs" plot slow "fast and long" "$@"; }
is "a plot has axes, units and a legend" eval 'LC_ALL=C plot --width 70 >a && grep -q "loss and eval_loss, nats/token" a && grep -q "slow loss" a && grep -qE "step$" a'
is "no line is wider than asked" eval 'test -z "$(awk "length > 69" a)"'
is "in a locale without UTF-8 it is ASCII" eval 'LC_ALL=C plot >a && test -z "$(LC_ALL=C tr -d "\\n -~" <a)"'
is "in one with it, braille" eval 'LC_ALL=C.UTF-8 "$runs" plot slow --metric loss >a && LC_ALL=C grep -q "$(printf "\342\240")" a'
is "--ascii is ASCII all the same" eval 'LC_ALL=C.UTF-8 plot --ascii >a && test -z "$(LC_ALL=C tr -d "\\n -~" <a)"'
is "colours where they are asked for, and only there" eval 'plot >a && ! grep -q "$(printf "\033")" a && plot --color always >a && grep -q "$(printf "\033")" a'
is "several metrics, over time, logarithmic" shows ' seconds$' plot --metric grad_norm,lr,tokens_per_s --x time --log
is "each has its own plot" test "$(grep -cE '^ *(grad_norm|lr|tokens_per_s, tokens/s)$' shown)" = 3
loss=loss,loss,loss,loss,loss,loss,loss,loss
is "a metric named often is drawn once" eval 'plot --metric $loss,$loss,$loss,$loss,$loss,eval_loss >a && plot >b && cmp a b'
mkdir runs/chain && cp runs/slow/run.json runs/chain
for x in a b c d e f g h i j; do chain=${chain:+$chain,}eval_eval_$x,$x,eval_$x; done
echo "{\"step\":1,\"$(echo "$chain" | sed 's/,/":1,"/g')\":1}" >runs/chain/metrics.jsonl
is "and so is one that two others go with" eval '"$runs" plot chain --metric "$chain" --svg chain.svg >a && [ "$(grep -c "<path" chain.svg)" = 30 ]'
is "an SVG file" shows '^# loss.svg' plot --svg loss.svg
is "well formed, with a path and a name for every curve" holds "$runs" svg loss.svg
refused "a metric that is none: what there is instead" 2 'no run has the metric "los"; there are: loss, grad_norm' plot --metric los
cp loss.svg was
is "written again, it is replaced" eval 'plot --svg loss.svg >a && cmp loss.svg was'
mkfifo pipe
timeout 300 cat pipe >piped 2>&1 &
is "a pipe is written to, and stays" eval 'plot --svg pipe >a && wait $! && cmp piped loss.svg && [ -p pipe ]'
: >target.svg && ln -s target.svg link.svg && ln -s new.svg dangling.svg
is "of a link the target is replaced" eval 'plot --svg link.svg >a && [ -h link.svg ] && cmp target.svg loss.svg'
is "or made" eval 'plot --svg dangling.svg >a && [ -h dangling.svg ] && cmp new.svg loss.svg'
ln -s /proc/self/fd/1 stdout # as /dev/stdout is one; a link there is not to be put at risk
is "standard output gets the picture alone, be it a pipe or a file" eval 'plot --svg stdout | cmp - loss.svg && plot --svg stdout >a && cmp a loss.svg && [ -h stdout ]'
cp runs/slow/run.json was
refused "a file that is no picture is not replaced" 2 "--svg runs/slow/run.json: the file that is there is no SVG picture" plot --svg runs/slow/run.json
is "nor through a link" eval 'ln -s runs/slow/run.json run.svg && ! plot --svg run.svg && cmp runs/slow/run.json was'
refused "nor is a folder" 1 "cannot write runs/slow: Is a directory" plot --svg runs/slow
refused "where the SVG cannot be written" 1 "cannot write gone/a.svg" plot --svg gone/a.svg
is "a broken run's curve is drawn, and what is wrong is said" shows '^# torn: ' "$runs" plot torn slow
refused "a full disk behind its output" 1 "cannot write to standard output" sh -c "'$runs' list >/dev/full"
mkdir empty && cd empty
refused "nothing to plot" 1 "no runs in runs/ to plot" "$runs" plot
finish
