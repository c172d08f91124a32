#!/bin/sh
# test_download.sh - tools/download.sh against a hub of our own on the loopback interface. TAP; exit 0, 1 or 77.
for c in curl python3 flock; do
    command -v $c >/dev/null 2>&1 || { echo "ok 1 - download # SKIP $c is not installed"; exit 77; }
done
here=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$tmp"' EXIT
mkdir -p "$tmp/repo/onnx"
cd "$tmp" || exit 1
unset HF_TOKEN http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
export no_proxy='*'

echo '{"model_type": "llama"}' >repo/config.json
echo '{"a": 1}' >repo/tokenizer.json
echo '{"b": 2}' >repo/tokenizer_config.json
: >repo/merges.txt # an empty file is one too
echo 'x' >repo/README.md
echo 'terms' >repo/LICENSE
echo 'x' >repo/pytorch_model.bin
echo 'x' >repo/consolidated.safetensors
echo '{}' >repo/model.safetensors.index.json
echo 'x' >repo/onnx/config.json
head -c 300000 /dev/urandom >repo/model-00001-of-00002.safetensors
head -c 100001 /dev/urandom >repo/model-00002-of-00002.safetensors
python3 "$here/hub_server.py" "$tmp/repo" >ports &
server=$!
until [ -s ports ] || ! kill -0 $server 2>/dev/null; do sleep 0.05; done
read -r hub _ <ports || { echo "ok 1 - download # SKIP no loopback server could be started"; exit 77; }
HF_ENDPOINT=http://127.0.0.1:$hub
export HF_ENDPOINT

n=0 failed=0
check() { # name, then a command that must succeed
    what=$1
    shift
    n=$((n + 1))
    if "$@"; then echo "ok $n - $what"; else
        failed=1
        echo "not ok $n - $what"
        sed 's/^/# /' out
    fi
}
get() { # expected exit code, then arguments
    want=$1
    shift
    : >log
    timeout 300 sh "$here/../tools/download.sh" "$@" >out 2>&1
    code=$?
    [ "$code" = "$want" ] || echo "exit code $code, expected $want" >>out
    [ "$code" = "$want" ]
}
says() { grep -q -e "$1" out; }
same() { for f in README.md LICENSE config.json tokenizer.json tokenizer_config.json merges.txt model.safetensors.index.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors; do cmp -s "repo/$f" "$1/$f" || { echo "$f differs" >>out; return 1; }; done; }
no_more() { [ "$(ls "$1" | wc -l)" = 9 ] && [ ! -e "$1/onnx" ]; }
mode() { echo "$*" >mode; }

mode
check "a whole repository comes" get 0 owner/tiny d1
check "every file is right" same d1
check "nothing else came: no pickles, no sub-folders, no second copy" no_more d1
check "the metadata names commit and hash, as the hub's own client writes it" sh -c '
    set -- $(cat d1/.cache/huggingface/download/model-00002-of-00002.safetensors.metadata)
    [ "$1" = 0123456789abcdef0123456789abcdef01234567 ] && [ "$2" = "$(sha256sum <repo/model-00002-of-00002.safetensors | cut -d " " -f 1)" ] && [ "$3" -gt 1600000000 ]'
check "no partial file is left" sh -c '! ls d1/.cache/huggingface/download | grep -q incomplete'
check "again: exit 0" get 0 owner/tiny d1
check "again: nothing is fetched" sh -c '! grep -q "^Cdn\|/resolve/\|/cache/" log'
echo edited >>d1/README.md
check "a card that was edited here: exit 0" get 0 owner/tiny d1
check "... it stays" grep -q edited d1/README.md
check "... and that is said" says 'README.md: another one is here; it stays'
echo changed >>d1/tokenizer.json
cp -r d1 d1.before
check "a different file here is an error" get 1 owner/tiny d1
check "the message names it" says 'd1/tokenizer.json is there and differs'
check "and nothing was replaced" cmp -s d1/tokenizer.json d1.before/tokenizer.json
ln -s /nowhere d1/added_tokens.json

mode break
check "a broken connection is resumed" get 0 owner/tiny d2
check "the resumed files are right" same d2
check "by Range, not from the start" grep -q '^Cdn GET /model-00001.* bytes=150000- ' log

mode silent
check "a connection that always breaks fails in the end" get 1 owner/tiny d3
check "with a message" says 'the connection broke'
check "no half file under its name" test ! -e d3/model-00001-of-00002.safetensors
mode
check "and a later run goes on" get 0 owner/tiny d3
check "from where it stopped" grep -q '^Cdn GET /model-00001.* bytes=150000- ' log
check "to the right end" same d3

mode silent
get 1 owner/tiny d4
mode norange
check "a host without ranges: from the beginning" get 0 owner/tiny d4
check "and right" same d4

mode garble
check "changed bytes are refused" get 1 owner/tiny d5
check "because of the hash" says 'its hash differs'
check "and do not stay" sh -c '! ls d5/*.safetensors d5/.cache/huggingface/download/*.incomplete 2>/dev/null | grep -q .'
mode wrongetag
check "a hash other than the listed one is refused" get 1 owner/tiny d6
check "and said" says 'lists the hash'
mode notree
check "a broken listing is refused" get 1 owner/tiny d7
check "as no JSON" says 'is no JSON'
mode pages
check "a listing in pages" get 0 owner/tiny d8
check "is read to its end" same d8

# What every process list would show.
mkdir bin
printf '#!/bin/sh\necho "$@" >>%s/arguments\nexec %s "$@"\n' "$tmp" "$(command -v curl)" >bin/curl
chmod +x bin/curl
PATH=$tmp/bin:$PATH
mode auth
check "without a token: refused" get 1 owner/tiny d9
check "the message says what to do" says 'set HF_TOKEN'
HF_TOKEN=hf_secretForTests
export HF_TOKEN
check "with the token: everything comes" get 0 owner/tiny d9
check "and is right" same d9
check "the hub was given the token" grep -q '^Hub .*Bearer_hf_secretForTests' log
check "the CDN was not" sh -c '! grep "^Cdn" log | grep -qi bearer'
check "no command line held it" sh -c '[ -s arguments ] && ! grep -q hf_secretForTests arguments'
check "nor is it printed or kept" sh -c '! grep -rq hf_secretForTests d9 out'
mode gated
check "a licence not accepted" get 1 owner/tiny d10
check "is said" says 'accept the licence'
HF_TOKEN='a
b'
check "a token with a line end is refused" get 2 owner/tiny d10
unset HF_TOKEN
mode

# A data set: the files of rows, in their folders.
mkdir -p repo/data repo/lang=en
for f in data/train-00000-of-00002.parquet data/train-00001-of-00002.parquet data/test-00000-of-00001.parquet lang=en/0000.parquet; do
    head -c 70000 /dev/urandom >"repo/$f"
done
echo '{"a": 1}' >repo/rows.jsonl
echo '{}' >repo/dataset_infos.json
echo x >"repo/data/odd name.parquet"
whole() { for f in data/train-00000-of-00002.parquet data/train-00001-of-00002.parquet data/test-00000-of-00001.parquet lang=en/0000.parquet; do cmp "repo/$f" "$1/$f" >>out 2>&1 || return 1; done; }
check "a data set comes" get 0 --dataset owner/tiny s1
check "a file of another name is told, not taken" says 'left out: 1, for names with other characters'
check "every file is right" whole s1
check "Parquet files alone" sh -c '[ "$(find s1 -type f ! -path "*/.cache/*" | wc -l)" = 4 ]'
check "from the data set's address" grep -q '^Hub HEAD /datasets/owner/tiny/resolve/' log
check "again: nothing is fetched" sh -c 'sh "$0/../tools/download.sh" --dataset owner/tiny s1 >out 2>&1; : >log; sh "$0/../tools/download.sh" --dataset owner/tiny s1 >out 2>&1 && ! grep -q "^Cdn\|/resolve/\|/cache/" log' "$here"
check "a part of it" get 0 --dataset owner/tiny s2 --include 'data/test-*' --include=lang=en/*
check "... and nothing else" sh -c '[ "$(find s2 -type f ! -path "*/.cache/*" | sort | tr "\n" " ")" = "s2/data/test-00000-of-00001.parquet s2/lang=en/0000.parquet " ]'
check "no such part" get 1 --dataset owner/tiny s3 --include 'nope*'
check "is said" says 'no file of rows fits --include nope\*'
check "and leaves no folder" test ! -e s3
check "a pattern that is none" get 2 --dataset owner/tiny s3 --include 'a$(b)'
check "a part of a model" get 2 owner/tiny s3 --include 'x*'
mkdir kept && mv repo/data repo/lang=en kept
check "without Parquet files: the others" get 0 --dataset owner/tiny s4
check "... those with rows" sh -c 'cmp -s repo/rows.jsonl s4/rows.jsonl && [ ! -e s4/dataset_infos.json ] && [ ! -e s4/README.md ]'
mkdir bare && mv repo/*.json* repo/*.txt repo/onnx bare
check "no rows at all" get 1 --dataset owner/tiny s5
check "is said, with the copy on the Hub" says 'revision refs/convert/parquet'
mv bare/* repo

# ---- a hostile hub ----
mode endless
check "a host that sends without end" get 1 owner/tiny h1
check "is stopped" says 'sends more than the 300000 bytes the hub lists'
check "... after a few KiB more" sh -c 'until grep -q "^Cdn sent" log; do sleep 0.05; done; [ "$(sed -n "s/^Cdn sent //p" log | head -n 1)" -lt 1000 ] && [ -z "$(find h1 -name "model-*" -type f)" ]'
mode drip
check "a byte a connection" get 1 owner/tiny h2
check "... is no progress for ever" sh -c '[ "$(grep -c "^Cdn GET" log)" -lt 20 ]'
mode globs
check "an address that counts to 100,000" get 1 owner/tiny h3
check "... is one address" sh -c '[ "$(grep -c "^Cdn GET" log)" -lt 20 ]'
mode nested
check "a file that is the folder of another" get 1 --dataset owner/tiny h4
check "... is refused" says 'the hub lists x.parquet/y.parquet, and a file x.parquet'
check "... and leaves nothing" test ! -e h4
for m in longsha lines; do
    mode $m
    check "a hub that names a long commit: $m" get 1 owner/tiny h5
    check "... is refused" says 'names no commit for "main"'
done
mkdir repo/only && mv repo/rows.jsonl repo/only
mode many
check "300,000 files and escaped quotes" get 0 --dataset owner/tiny h6 --include 'only/*'
check "... of which one is asked for" sh -c '[ "$(find h6 -type f ! -path "*/.cache/*")" = h6/only/rows.jsonl ]'
mv repo/only/rows.jsonl repo && rmdir repo/only
mode names
check "names that steer a terminal" get 1 --dataset owner/tiny h7 --include 'nope*'
check "... do not" sh -c 'grep -q "it has .*pwned" out && ! grep -q "$(printf "[\033\007\233]")" out'
mode huge
check "a size beyond all numbers" get 1 owner/tiny h8
check "... is none" says 'gives no size for config.json'
mode
mkdir -p h9/.cache/huggingface/download/.tmp && echo left >h9/.cache/huggingface/download/.tmp/over
check "two at once into one folder" sh -c 'flock h9/.cache/huggingface/download/.lock timeout 60 sh "$0/../tools/download.sh" owner/tiny h9 >out 2>&1; [ $? = 1 ]' "$here"
check "... are told" says 'another download.sh brings files to h9'
check "what a killed one left" get 0 owner/tiny h9
check "... is removed" test ! -e h9/.cache/huggingface/download/.tmp

# ---- paths, hashes and redirects of an enemy ----
mode climbs
mkdir in
mv kept/* repo
check "names that climb or hide: a data set" get 0 --dataset owner/tiny in/set
check "... what has a plain name comes" whole in/set
check "... nothing else does" sh -c '[ "$(find in -type f ! -path "*/.cache/*" | wc -l)" = 4 ] && [ ! -e out.parquet ] && [ ! -e /out.parquet ]'
check "names that climb or hide: a model" get 0 owner/tiny in/model
check "... what a recipe reads comes" same in/model
check "... nothing else does" eval 'no_more in/model && [ "$(ls -A in | tr "\n" " ")" = "model set " ] && [ ! -e out.safetensors ] && [ ! -e out.json ]'
for m in shorthash pathhash; do
    mode $m
    check "a hash that is none: $m" get 1 owner/tiny h10
    check "... is said" says 'gives no hash for config.json'
done
mode pathcommit
check "a commit that is a path" get 1 owner/tiny h10
check "... is none" says 'names no commit for "main"'
mode forever
check "a listing of more pages than there can be" get 1 owner/tiny h10
check "... is cut" says 'more than 100 pages of files'
mode circles
check "a hub that redirects in circles" get 1 owner/tiny h10
check "... is left" says 'the hub redirects in circles'
mode around
check "a CDN that redirects in circles" get 1 owner/tiny h10
check "... is left, too" sh -c '[ "$(grep -c "^Cdn GET" log)" -lt 60 ]'
mode longer
check "a file longer than listed" get 1 owner/tiny h11
check "... is said" says 'sends more than the 300000 bytes the hub lists'
check "... at once" sh -c '[ "$(grep -c "^Cdn GET" log)" = 1 ]'
mkdir tls # a curl for which https is http
printf '#!/bin/sh\nsed "s|^url = \\"https:|url = \\"http:|" | %s "$@"\n' "$(command -v curl)" >tls/curl
chmod +x tls/curl
mode
check "from https to http" env PATH="$tmp/tls:$PATH" HF_ENDPOINT="https://127.0.0.1:$hub" sh -c '! sh "$0/../tools/download.sh" owner/tiny h12 >out 2>&1' "$here"
check "... is refused" says 'the hub redirects to an unencrypted address'
mode plain
check "from https to http, later" env PATH="$tmp/tls:$PATH" HF_ENDPOINT="https://127.0.0.1:$hub" sh -c '! sh "$0/../tools/download.sh" owner/tiny h13 >out 2>&1' "$here"
check "... is not followed" sh -c '[ -e h13/config.json ] && ! ls h13 | grep -q "safetensors$"'

# ---- disks, and what is here ----
mode
part() { echo "$1/.cache/huggingface/download/$2.$(sha256sum <"repo/$2" | cut -d " " -f 1).incomplete"; } # FOLDER FILE
disk() { printf '#!/bin/sh\nprintf "Filesystem 1024-blocks Used Available Capacity Mounted\\nx 9 9 %s 9%%%% /\\n"\n' "$1" >bin/df && chmod +x bin/df; } # KIB
disk 389
check "no room" get 1 owner/tiny h14
check "is said before anything comes" eval 'says "MiB are to come, the disk has 0 MiB free" && ! grep -q "^Cdn\|/resolve/" log'
mkdir -p h14/.cache/huggingface/download && head -c 150000 repo/model-00001-of-00002.safetensors >"$(part h14 model-00001-of-00002.safetensors)"
disk 300
check "room for the rest suffices" get 0 owner/tiny h14
check "... and the rest alone comes" eval 'same h14 && grep -q "^Cdn GET /model-00001.* bytes=150000- " log'
rm bin/df
sed -i s/1/2/ h14/tokenizer.json
check "a different file of the same size" get 1 owner/tiny h14
check "is an error, too" says 'h14/tokenizer.json is there and differs'
mkdir -p h15/.cache/huggingface/download && head -c 400000 /dev/zero >"$(part h15 model-00001-of-00002.safetensors)"
check "a part longer than the file" get 0 owner/tiny h15
check "... is not gone on with" eval 'same h15 && ! says "the connection broke"'
mkdir -p "$(part h16 model-00001-of-00002.safetensors)"
check "a file that cannot be written" get 1 owner/tiny h16
check "... is said at once" eval 'says "cannot write to h16" && [ "$(grep -c "^Hub HEAD .*/model-00001" log)" = 1 ]'

check "no such repository" get 1 owner/none d11
check "is said" says '404'
check "no such revision" get 1 owner/tiny d11 --revision nope
check "another revision" get 0 owner/tiny d11 --revision=v1
check "a revision with a slash" get 0 owner/tiny d12 --revision refs/pr/1
check "no name: usage" get 2
check "no folder: usage" get 2 owner/tiny
check "a name that is none: usage" get 2 tiny d13
check "a name that climbs: usage" get 2 ../tiny d13
check "an unknown flag: usage" get 2 owner/tiny d13 --force
check "help" get 0 --help
check "help shows how" says 'tools/download.sh HuggingFaceTB/SmolLM2-135M'
rm repo/*.safetensors
check "a repository without safetensors" get 1 owner/tiny d14
check "is said" says 'no safetensors weights'
HF_ENDPOINT=http://127.0.0.1:9 # nobody listens there
check "no network" get 1 owner/tiny d15
check "is said" says 'is there a network'
echo "1..$n"
exit $failed
