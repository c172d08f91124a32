#!/bin/sh
# test_docs.sh - every command that README.md and docs/ print is run: here, with a tiny model, a small file and rows that nobody
# measured in the places of those it names (a sweep as far as --dry-run goes), or by the test that stands beside it below. A
# command that nothing runs is a failure.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
if sanitized; then
    skip "commands of the pages" "the other tests run with sanitizers what they run, and this takes minutes more"
    finish
fi
# Indented lines of a page that begin with a command; a line that ends in \ goes on in the next; comments are cut.
commands() { sed -n 's/^    //p' "$@" | sed -e ':a' -e '/\\$/{' -e N -e 's/\\\n *//' -e ba -e '}' | grep -E '^(build/|make|cp |cc |\./|tools/[a-z]|[A-Z_]+=|mpirun |srun |torchrun |export )' | sed 's/  *#.*//'; }
commands README.md docs/*.md >"$tmp/commands"
is "the pages have commands" test "$(wc -l <"$tmp/commands")" -ge 15

mkdir "$tmp/place" && cd "$tmp/place" || exit 1
mkdir build && ln -s "$BUILD"/* build && ln -s "$here/recipes" "$here/tools" "$here/datasets" "$here/defaults" . || exit 1
tiny models/SmolLM2-135M 1 --max-positions 512 >/dev/null && cp "$here/datasets/stories.jsonl" my.jsonl || exit 1
cp my.jsonl stories.jsonl
printf 'One day\n\nThe dog\n' >prompts.txt
printf 'gpu,usd_per_hour\nl4,0.71\n' >prices.csv
printf 'text\nWater is wet.\nFire is hot.\n' >facts.csv
echo '{"prompt": "Name a colour.", "chosen": " Red.", "rejected": " Seven."}' >pairs.jsonl
printf '{"prompt": "Name a colour.", "completion": " Red.", "label": true}\n{"prompt": "Add.", "completion": " No.", "label": false}\n' >judged.jsonl
printf '[{"instruction": "Say a.", "input": "", "output": "a"},
{"instruction": "Say b.", "input": "b", "output": "b"}]' >alpaca.json
cp alpaca.json held.json
printf 'question,answer\n"Say a, or b.",a\n"Say c.",c\n' >questions.csv
printf '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}\n' >chat.jsonl
sed -n '/^# axolotl.yml$/,/^```$/p' "$here/docs/other-tools.md" | grep -v '^```' >axolotl.yml
mkdir -p data/alpaca && cp alpaca.json data/alpaca/train.json
TUNE_DEFAULTS="$here/defaults" "$BUILD/tests/helpers/fill" samples defaults/spaces/laptop.yaml 4 >/dev/null
cp defaults/spaces/laptop.yaml space.yaml
by() { is "$command: run by $1" grep -qF -- "$2" "$here/$1"; } # FILE TEXT - which stands there
while IFS= read -r command; do
    case $command in
    "make quickstart") by tests/recipes/test_quickstart.sh 'sh "$here/tools/quickstart.sh"' ;;
    "make proof") by tests/recipes/test_proof.sh 'sh tests/proof.sh --small' ;;
    "make package") by tests/tree/test_package.sh '"make package" pack one' ;;
    "make BUILD=build/native "*) # minutes of compiling: what it would compile
        is "$command" eval 'make -C "$here" -n BUILD="$tmp/native" ${command#*build/native} | grep -q -- "-DTUNE_CPU_ISA=tune_cpu_isa_native .* -march=native .*gemm"'
        ;;
    "build/studio" | "build/studio --root "*) by tests/studio/server.sh '"$studio" --root "$root"' ;; # it serves until it is ended
    "cp -r tools/studio/page my_ui" | "build/studio --ui my_ui") by tests/studio/test_studio_runs.sh 'cp -r tools/studio/page' ;;
    "build/studio run start"*) by tests/studio/test_cli.sh "run start finetune_full" ;;
    "build/studio run stop"*) by tests/studio/test_cli.sh "run stop 3" ;;
    "build/studio "*)
        if [ -x build/studio ]; then is "$command" sh -c "$command"; else skip "$command" "no studio"; fi
        ;;
    "mpirun "*) by tests/recipes/test_ranks.sh 'mpirun -q --bind-to none -n 2 "$full"' ;;
    "srun --mpi=pmix "*) by tests/slurm/slurm_ranks.sh 'srun --mpi=pmix -n 2 -N 1 "$full"' ;;
    "torchrun "*) by tests/recipes/test_meeting.sh '--nproc-per-node 2 --no-python "$full"' ;;
    "export MASTER_ADDR"* | RANK=[01]*) by tests/recipes/test_meeting.sh 'WORLD_SIZE=$n RANK=$r "$full"' ;;
    "MASTER_ADDR="* | "srun build/"*) by tests/slurm/slurm_ranks.sh 'MASTER_ADDR=\$(scontrol show hostnames' ;;
    "build/finetune_full "*"--device cuda --ranks 2"*)
        by tests/cuda_on_cpu/test_nccl.sh 'train two$recipe finetune_$recipe $options --ranks 2' ;;
    "make test") by .ci/stages.sh 'always="test ' ;;
    "make cuda" | "make CUDA=0") by tests/devices/test_without_cuda.sh "without CUDA=0 cuda" ;;
    "make cuda-paper") by tests/cuda_on_cpu/test_gpu.sh "cuda_on_cpu/cuda_paper" ;;
    "make test-cuda") by .ci/stages.sh "test-cuda" ;;
    "cp recipes/finetune_full.c recipes/mine.c" | "make build/mine") by tests/recipes/test_edit_a_recipe.sh "build build/mine" ;;
    "build/mine "*--output\ runs/frozen)
        by tests/recipes/test_edit_a_recipe.sh "frozen three --freeze-layers 3"
        cp -r runs/first runs/frozen # for the command behind it
        ;;
    "cp /usr/local/share/tune.c/recipes/"* | "make -f /usr/local/share/tune.c/recipe.mk mine")
        by tests/tree/test_installed.sh "recipe mine" ;;
    "build/mine "*--label-smoothing*) by tests/losses/test_own_losses.sh 'mine --label-smoothing 0.1' ;;
    "make RECIPE=tests/recipes/distillation.c") by tests/losses/test_own_losses.sh 'tests/recipes/distillation.c' ;;
    "tools/download.sh "*) by tests/datasets/test_download.sh 'tools/download.sh' ;;
    "cc enough.c "* | "./enough "*) by tests/tree/test_installed.sh "built enough" ;;
    "build/samples compare before after "*) # the sweeps above it measured nothing
        for name in before after; do TUNE_DEFAULTS="$here/defaults" build/tests/helpers/fill samples defaults/spaces/laptop.yaml 4 5 $name >/dev/null; done
        is "$command" sh -c "$command"
        ;;
    *defaults/spaces/quality.yaml* | *finetune_lora_quality*) by tests/sweeps/test_quality.sh 'page=$here/docs/quality.md' ;;
    *defaults/spaces/cpu-ranks.yaml*) by tests/sweeps/test_sweep_ranks.sh 'space=$here/defaults/spaces/cpu-ranks.yaml' ;;
    *'$q'*) by tests/sweeps/test_questions.sh 'page=$here/docs/questions.md' ;;
    "build/samples compare build=previous "*) by tests/sweeps/test_questions.sh 'page=$here/docs/questions.md' ;;
    "build/export_gguf --model "*) is "$command" sh -c "$command --pre smollm" ;; # the tiny model's vocabulary is its own
    "build/sweep "*"--operation ray_tune.yaml") by tests/sweeps/test_operators.sh '--operation o.yaml' ;;
    "build/sweep "*) is "$command" sh -c "${command% --dry-run} --dry-run" ;;
    build/*) # "..." stands for a model and rows
        # a chat would read the commands behind it
        is "$command" sh -c "$(printf '%s' "$command" | sed 's| \.\.\. | --model models/SmolLM2-135M --dataset my.jsonl --max-steps 4 |')" </dev/null ;;
    *) is "$command: no test runs it" false ;;
    esac
    reached=$((${reached:-0} + 1))
done <"$tmp/commands"
is "no command was passed over" test "$reached" = "$(wc -l <"$tmp/commands")"
is "README.md has at most 150 lines" test "$(wc -l <"$here/README.md")" -le 150
# The loop on the first screen is the recipe's, indented by one level less.
sed -n '/^```c$/,/^```$/p' "$here/README.md" | sed '/^```/d; s/^/    /' >"$tmp/shown"
sed -n '/^    while (/,/^    }$/p' "$here/recipes/finetune_full.c" >"$tmp/loop"
is "README.md shows the recipe's loop" diff "$tmp/loop" "$tmp/shown"
links() { grep -ohE '\]\([a-z/.-]+\)' "$here/README.md" "$here"/docs/*.md | tr -d '()]' | while read -r l; do [ -e "$here/$l" ] || [ -e "$here/docs/$l" ] || echo "$l"; done; }
none "the files they link to are there" "$(links)"
for p in fit finetune_full runs sweep space samples finetune_lora finetune_dpo merge_adapter export_gguf generate evaluate init_model studio; do [ ! -x build/$p ] || build/$p --help all; done >"$tmp/help"
sh tools/download.sh --help >>"$tmp/help"
flags() { grep -ohE '`--[a-z][a-z-]*' "$here/README.md" "$here"/docs/*.md | tr -d '`' | sort -u | while read -r f; do
    positive=${f#--no-}
    grep -qE -e "(^| )(--(\[no-\])?${positive#--}|$f)( |$)" "$tmp/help" || case $f in --freeze-layers | --label-smoothing | --top-k) ;; *) echo "$f" ;; esac
done; }
none "the options they name exist" "$(flags)"
# Every program: --help fits on a page and says how to get the rest.
pages() {
    for p in build/*; do
        case $p in *.*) continue ;; esac
        [ -f "$p" ] && [ -x "$p" ] || continue
        "$p" --help >"$tmp/short" && "$p" --help all >"$tmp/long" || echo "$p fails"
        [ "$(wc -l <"$tmp/short")" -le 100 ] || echo "$p --help has $(wc -l <"$tmp/short") lines"
        awk -v p="$p" 'length($0) > 100 { print p ": wider than 100 columns: " $0 }' "$tmp/short" "$tmp/long"
        grep -qx "This is the short help.* ${p#build/} --help all" "$tmp/short" || echo "$p does not name --help all"
        "$p" --describe | grep -oE '"flag":[[:space:]]*"--[^"]*' | sed 's/.*"//' | while read -r f; do
            grep -qE -e "^  --(\[no-\])?${f#--}( |$)" "$tmp/long" || echo "$p --help all lacks $f"
        done
    done
}
none "--help has at most 100 lines, --help all has every option" "$(pages)"
if command -v python3 >/dev/null; then
    none "comments and pages keep the rules of prose.sh" "$(sh "$here/tests/prose.sh" | grep '^not plain')"
else skip "comments and pages keep the rules of prose.sh" "python3 is missing"; fi
finish
