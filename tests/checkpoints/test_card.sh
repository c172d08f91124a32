#!/bin/sh
# test_card.sh - the model card of a checkpoint: what it says, what it does not tell, and that an edited one stays.
# tests/peers/card_peer.py has the Hub's own reader read it.
. tests/tap.sh
data=$here/datasets/stories.jsonl
mkdir "$tmp/home" && cd "$tmp/home" || exit 1
tiny model 1 >/dev/null && head -40 "$data" >my.jsonl
train() { # NAME OPTION...
    out=$1
    shift
    "$BUILD/finetune_full" --dataset my.jsonl --max-length 32 --threads 1 --output "$out" "$@" >"$out.out" 2>&1 || { cat "$out.out"; false; }
}
has_line() { grep -qxF -- "$1" "$2/README.md" || { cat "$2/README.md"; return 1; }; }
has_no() { ! grep -qF -- "$1" "$2/README.md" || { cat "$2/README.md"; return 1; }; }

is "a run" train a --model model --max-steps 6 --lr 1e-3 --train-split 0.8 --eval-every 2 --save-every 3 --log-every 2
final=a/checkpoint-final
is "each checkpoint has a card" eval '[ -f a/checkpoint-3/README.md ] && [ -f a/checkpoint-6/README.md ]'
is "base: random weights are named so, and are no base_model" eval 'has_line "| base | random weights, seed 1, hash of the weights \`$(sed -n "s/.*\"weights_hash\":[^\"]*\"\([0-9a-f]*\)\".*/\1/p" a/run.json)\` |" $final && has_no base_model: $final'
is "data, with the hash in report.json" has_line "| data | \`my.jsonl\`, 40 rows, hash \`$(sed -n 's/.*"data_hash":[^"]*"\([0-9a-f]*\)".*/\1/p' a/report.json)\` |" $final
is "options that differ from the defaults" eval 'has_line "| \`lr\` | \`0.001\` | \`2e-5\` |" $final && has_line "| \`eval-every\` | \`2\` | \`0\` |" $final && has_no "| \`batch-size\` |" $final'
is "... but for those that change no number" eval 'has_no log-every $final && has_no save-every $final && has_no "threads" $final && has_no "--output" $final'
(cat my.jsonl && echo broken) >bad.jsonl
is "... and for those without which the data is not read" eval '"$BUILD/finetune_full" --model model --dataset bad.jsonl --skip-bad-rows --expansion-limit 200 --max-length 32 --max-steps 1 --output bad >/dev/null && grep -q "^build/finetune_full .* --skip-bad-rows --expansion-limit 200" bad/checkpoint-1/README.md'
eval_loss=$(printf %.4f "$(sed -n 's/.*"eval_loss":\([0-9.e-]*\).*/\1/p' a/metrics.jsonl | tail -n 1)")
is "losses: that of the evaluation after the save, too" has_line "| evaluation, step 6 | $eval_loss |" $final
is "... in the checkpoint on the way, the one of then" eval 'grep -q "^| evaluation, step 2 | " a/checkpoint-3/README.md'
is "the command repeats the run" eval 'command=$(sed -n "s|^build/finetune_full |\"$BUILD/finetune_full\" |p" $final/README.md) && eval "$command --threads 1 --log-every 2 --output again" >/dev/null && same_run a again'
is "no licence is told, and said" eval 'grep -q "^The base.s folder names none in a README.md\." $final/README.md && has_no "license: \"" $final'

for i in $(seq 20); do printf '{"prompt": "Say %s", "completion": "yes %s"}\n' "$i" "$i"; done >said.jsonl
is "the best by another number" eval 'train f1 --model model --dataset said.jsonl --max-steps 4 --train-split 0.8 --eval-every 2 --eval-metrics token_f1 --eval-tokens 4 --best-by token_f1 &&
    grep -q "^The best .token_f1. was [0-9.e-]*, at step [24]\.$" f1/checkpoint-final/README.md && has_no "lowest evaluation" f1/checkpoint-final'

# ---- an edited card ----
is "a run that goes on" train b --model model --max-steps 6 --lr 1e-3 --save-every 2 --train-split 0.8 --stop-at-step 4
echo "My own words." >>b/checkpoint-4/README.md && cp b/checkpoint-4/README.md edited && cp b/checkpoint-2/README.md untouched
is "... leaves cards of earlier checkpoints as they are" eval '"$BUILD/finetune_full" --resume b >/dev/null && cmp b/checkpoint-4/README.md edited && cmp b/checkpoint-2/README.md untouched'
# A save of one step comes twice: before the last evaluation and after. Between the two, another writes into the card.
cat >edit.c <<'E2'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int rename(const char *from, const char *to)
{
    static int (*real)(const char *, const char *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "rename");
    int status = real(from, to);
    const char *end = strstr(to, "checkpoint-6");
    if (end && !strcmp(end, "checkpoint-6")) {
        char path[4096];
        snprintf(path, sizeof path, "%s/README.md", to);
        FILE *f = fopen(path, "a");
        if (f) {
            fputs("My own words.\n", f);
            fclose(f);
        }
    }
    return status;
}
E2
if sanitized; then
    skip "an edit between two saves" "a sanitizer must be loaded first"
else
    is "an edit between two saves of a step stays" eval '$CC -shared -fPIC -o edit.so edit.c -ldl && LD_PRELOAD="$tmp/home/edit.so" train e --model model --max-steps 6 --lr 1e-3 --train-split 0.8 && tail -n 1 e/checkpoint-6/README.md | grep -qx "My own words." && ! grep -q "^| evaluation" e/checkpoint-6/README.md'
fi
is "--no-card leaves it out" eval 'train f --model model --max-steps 2 --no-card && [ ! -e f/checkpoint-2/README.md ] && [ -f f/checkpoint-2/model.safetensors ]'

# ---- what other people should not read ----
mkdir -p "$tmp/home/private/models" && cp -r model private/models/mine
is "paths become names" eval 'train g --model "$tmp/home/private/models/mine" --dataset "$tmp/home/my.jsonl,../home/my.jsonl" --eval-dataset "$tmp/home/my.jsonl" --max-steps 2 && has_no private g/checkpoint-2 && has_no "$tmp" g/checkpoint-2 && has_no ../home g/checkpoint-2'
is "... and the card says so" eval 'grep -q "^build/finetune_full --model mine --dataset my.jsonl,my.jsonl " g/checkpoint-2/README.md && has_line "Of paths outside the working folder, only the last name is given." g/checkpoint-2'
mkdir -p "private/client X/secret proj" && cp my.jsonl "private/client X/secret proj/my rows.jsonl" && cp my.jsonl "private/client X/a,b.jsonl"
is "... with spaces and commas, and however they lead out" eval 'train g1 --model "./../home/private/models/mine" --dataset "model/../../home/private/client X/secret proj/my rows.jsonl,./my.jsonl" --eval-dataset "$tmp/home/private/client X/a,b.jsonl" --max-steps 2 &&
    has_no private g1/checkpoint-2 && has_no client g1/checkpoint-2 && has_no secret g1/checkpoint-2 && grep -qF -- "--model mine --dataset '"'my rows.jsonl,./my.jsonl'"' " g1/checkpoint-2/README.md && grep -qF -- "--eval-dataset a,b.jsonl" g1/checkpoint-2/README.md'
is "... of a folder of rows, too" eval 'mkdir "private/client X/rows" && cp my.jsonl "private/client X/rows/train.jsonl" && train g2 --model model --dataset "$tmp/home/private/client X/rows/" --max-steps 1 && has_no client g2/checkpoint-1 && grep -qF "| data | \`rows\`, 40 rows" g2/checkpoint-1/README.md'
sed 's|"text": "[^ ]*|&../a: /b|' my.jsonl >marked.jsonl
is "a path within the folder stays, and what is no path" eval 'train g3 --model private/models/mine --dataset marked.jsonl --add-tokens "/think,/no_think" --response-template "../a: /b" --max-steps 1 &&
    grep -qF -- "--model private/models/mine " g3/checkpoint-1/README.md && grep -qF -- "--add-tokens /think,/no_think" g3/checkpoint-1/README.md && grep -qF -- "--response-template '"'../a: /b'"'" g3/checkpoint-1/README.md'
is "no name of this machine or user, no time" eval 'for word in "$(uname -n)" "$(date +%Y-)" "$(sed -n "s/.*\"cpu\":[^\"]*\"\([^\"]*\)\".*/\1/p" g/run.json | head -n 1)"; do [ -z "$word" ] || has_no "$word" g/checkpoint-2 || return 1; done'
cp my.jsonl 'a|b.jsonl'
is "a sign of Markdown stays in its cell" eval 'rm -rf h && "$BUILD/finetune_full" --model model --dataset "a|b.jsonl" --max-length 32 --max-steps 1 --output h >/dev/null && grep -qF "| data | \`a\|b.jsonl\`, 40 rows, " h/checkpoint-1/README.md'

cp -r model '[a](b) *c*'
is "... in the heading" eval 'train h1 --model "[a](b) *c*" --max-steps 1 && has_line "# \`[a](b) *c*\`, fine-tuned" h1/checkpoint-1'
printf 'x\n````\n# Heading' >name
is "... in the command" eval 'train h2 --model model --dataset marked.jsonl --response-template "../a: /b" --add-tokens "$(cat name)" --max-steps 1 && has_line "\`\`\`\`\`sh" h2/checkpoint-1 && has_line "\`\`\`\`\`" h2/checkpoint-1'

# ---- licence and base ----
licence() { # FRONT-MATTER... - the base's card
    printf '%s\n' --- "$@" --- '# Base' 'license: gpl' >model/README.md && rm -rf l && train l --model model --max-steps 1
}
is "the licence that the base's card names" eval 'licence "language: en" "license: apache-2.0" && has_line "license: \"apache-2.0\"" l/checkpoint-1 && has_line "That of the base: \`apache-2.0\`." l/checkpoint-1'
is "... in quotes, or in a list" eval "licence 'license: \"mit\"' && has_line 'license: \"mit\"' l/checkpoint-1 && licence license: '- cc-by-4.0' && has_line 'license: \"cc-by-4.0\"' l/checkpoint-1"
is "... one of its own" eval 'licence "license: other" "license_name: my-terms" "license_link: https://example.org/terms" && has_line "license_name: \"my-terms\"" l/checkpoint-1 && has_line "license_link: \"https://example.org/terms\"" l/checkpoint-1 && has_line "That of the base: \`my-terms\` (\`other\`)." l/checkpoint-1'
is "... with spaces, signs of Markdown, and a # that begins no remark" eval 'licence "license: other # mine" "license_name: Foo \`Bar\` Licence" "license_link: https://example.org/terms#two" && has_line "license_name: \"Foo \`Bar\` Licence\"" l/checkpoint-1 &&
    has_line "license_link: \"https://example.org/terms#two\"" l/checkpoint-1 && has_line "That of the base: \`Foo '"'Bar'"' Licence\` (\`other\`)." l/checkpoint-1'
is "... several" eval 'licence "license: [mit, apache-2.0]" && grep -A2 "^license:$" l/checkpoint-1/README.md | tail -n 2 >two && printf -- "- \"%s\"\n" mit apache-2.0 | cmp - two && has_line "That of the base: \`mit\`, \`apache-2.0\`." l/checkpoint-1'
is "... in a block" eval 'licence "license: >-" "  mit" && has_line "license: \"mit\"" l/checkpoint-1 && licence "license: |" "  mit" && has_line "license: \"mit\"" l/checkpoint-1'
is "... with quotes" eval "licence 'license: other' \"license_name: 'The \\\"X\\\" \\\\ Licence'\" && has_line 'license_name: \"The \\\"X\\\" \\\\ Licence\"' l/checkpoint-1"
crlf=$(printf '\r')
is "... with ends of lines of Windows" eval 'licence "license: mit" && sed -i "s/\$/$crlf/" model/README.md && rm -rf l && train l --model model --max-steps 1 && has_line "license: \"mit\"" l/checkpoint-1'
is "null is none" eval 'for none in null "~" "" "\"\"" "[]"; do licence "license: $none" && has_no "license: \"" l/checkpoint-1 && grep -q "folder names none in a README.md\. " l/checkpoint-1/README.md || return 1; done'
is "what cannot be read is said" eval 'licence "license: {a: mit}" && has_no "license: \"" l/checkpoint-1 && has_line "The front matter of the base'"'"'s README.md was not read: \`README.md:2:10: license must be a text, or a list of texts\`. Find it where the base came from, and add \`license:\` above." l/checkpoint-1 &&
    licence "license: [mit" && grep -q "README.md was not read: .README.md:[0-9]" l/checkpoint-1/README.md'
is "... a link into a repository that is not known is left out" eval 'licence "license: other" "license_link: LICENSE" && has_no license_link l/checkpoint-1'
is "what is below the front matter is none" eval 'licence "language: en" && has_no "license: \"" l/checkpoint-1'
printf 'license: mit\n' >model/README.md
is "nor is a card without front matter" eval 'rm -rf l && train l --model model --max-steps 1 && has_no "license: \"" l/checkpoint-1'
rm model/README.md && ln -s /etc/hostname model/README.md
is "nor a link that leads out of the folder" eval 'rm -rf l && train l --model model --max-steps 1 && has_no "license: \"" l/checkpoint-1'
rm model/README.md && echo terms >model/LICENSE
is "a file LICENSE is told" eval 'rm -rf l && train l --model model --max-steps 1 && grep -q "names none in a README.md, but it has a file LICENSE" l/checkpoint-1/README.md'
rm model/LICENSE
mkdir -p cache/models--me--base/snapshots/0123456789abcdef0123456789abcdef01234567 && cp model/* cache/models--me--base/snapshots/*/ && rm cache/models--me--base/snapshots/*/tune_weights.json
is "a snapshot of the Hub's cache has its id and revision" eval 'HF_HUB_CACHE=$tmp/home/cache train m --model me/base --max-steps 1 && has_line "base_model: me/base" m/checkpoint-1 && grep -q "^| base | \[me/base\](https://huggingface.co/me/base), revision \`0123456789abcdef0123456789abcdef01234567\`, " m/checkpoint-1/README.md && grep -q "^build/finetune_full --model me/base " m/checkpoint-1/README.md'
mkdir models && cp -r model models/SmolLM2-135M && rm models/SmolLM2-135M/tune_weights.json
is "a folder with the name of a known model, and other weights, is not that model" eval 'train n --model models/SmolLM2-135M --max-steps 1 && has_no base_model: n/checkpoint-1 && has_no huggingface.co n/checkpoint-1'
is "... nor by the known name or the Hub id, and the command names the folder" eval 'for name in smollm2-135m HuggingFaceTB/SmolLM2-135M; do train "n-${name##*/}" --model $name --max-steps 1 && has_no base_model: "n-${name##*/}/checkpoint-1" && has_no huggingface.co "n-${name##*/}/checkpoint-1" &&
    grep -q "^build/finetune_full --model models/SmolLM2-135M " "n-${name##*/}/checkpoint-1/README.md" || return 1; done'
cp -r model models/other && rm models/other/tune_weights.json
is "a folder after a Hub id that is not known here" eval 'train q --model me/other --max-steps 1 && has_line "base_model: me/other" q/checkpoint-1'
cp model/tune_weights.json models/other
is "... but not random weights" eval 'train r --model me/other --max-steps 1 && has_no base_model: r/checkpoint-1 && grep -q "^build/finetune_full --model models/other " r/checkpoint-1/README.md'
# A known model as small as ours.
cp -r "$here/defaults" defaults && cp -r models/SmolLM2-135M models/Small && small=model/model.safetensors
printf '{"name": "small", "hub_id": "me/Small", "parameters": %d, "config": {}}\n' $((($(wc -c <$small) - 8 - $(od -An -t u8 -N 8 $small)) / 2)) >defaults/models/small.json
export TUNE_DEFAULTS="$tmp/home/defaults"
is "a known model of the right size is that model" eval 'train s --model small --max-steps 1 && has_line "base_model: me/Small" s/checkpoint-1 && grep -q "^build/finetune_full --model me/Small " s/checkpoint-1/README.md'
is "... also after its folder, which the command names" eval 'train t --model models/Small --max-steps 1 && has_line "base_model: me/Small" t/checkpoint-1 && grep -q "^build/finetune_full --model models/Small " t/checkpoint-1/README.md'
cp model/tune_weights.json models/Small
is "... but not with random weights" eval 'train u --model small --max-steps 1 && has_no base_model: u/checkpoint-1 && has_no huggingface.co u/checkpoint-1 && grep -q "^build/finetune_full --model models/Small " u/checkpoint-1/README.md'
unset TUNE_DEFAULTS
is "an adapter's card" eval '"$BUILD/finetune_lora" --model model --dataset my.jsonl --max-length 32 --max-steps 1 --lora-r 4 --output o >/dev/null && has_line "library_name: peft" o/checkpoint-1 && has_line "- lora" o/checkpoint-1 && grep -q "^| trained | LoRA of rank 4, alpha " o/checkpoint-1/README.md'
mkdir -p data/rows && cp my.jsonl data/rows/train.jsonl
is "a data set of the Hub" eval 'train p --model model --dataset me/rows --max-steps 1 && has_line "datasets:" p/checkpoint-1 && has_line "- me/rows" p/checkpoint-1'
is "a file is none" has_no datasets: a/checkpoint-6
finish
