#!/bin/sh
# download.sh REPO DIR [--revision REV] - bring a model's folder from a Hugging Face hub.
# download.sh --dataset REPO DIR [--include PATTERN] [--revision REV] - bring a data set.
#
#     tools/download.sh HuggingFaceTB/SmolLM2-135M models/SmolLM2-135M
#     tools/download.sh --dataset tatsu-lab/alpaca data/alpaca
#
# Takes what a recipe reads. Of a model: config, tokenizer, chat template, safetensors weights, card and licence; no pickles,
# no other formats. Of a data set: its Parquet files, or if it has none .jsonl, .json, .csv, .tsv and .txt, in their folders.
# --include: only the files of a data set that fit a pattern of the shell, such as 'data/train-*'; may be given again.
# Some sets have no such files, only a script. The Hub then keeps a copy: --revision refs/convert/parquet.
# Every file is checked against the hub's hash before it gets its name. A broken download goes on where it stopped; a
# file that is here and right is kept; one that is here and different is an error, nothing is replaced. A model's card or
# licence that was edited here stays, and a line says so.
# HF_TOKEN: for gated models; it goes to the hub alone, not to the host a download is redirected to, and not onto a
# command line. HF_ENDPOINT: another hub (default https://huggingface.co). Exit codes: 0, 1 failed, 2 usage.
set -u
LC_ALL=C
export LC_ALL
name=download.sh
retries=5

usage() {
    echo "$name: $1" >&2
    echo "usage: $name REPO DIR [--revision REV], e.g. $name HuggingFaceTB/SmolLM2-135M models/SmolLM2-135M" >&2
    echo "       $name --dataset REPO DIR [--include PATTERN]..., e.g. $name --dataset tatsu-lab/alpaca data/alpaca" >&2
    exit 2
}
die() {
    echo "$name: $1" >&2
    exit 1
}

repo='' dir='' revision=main kind=models what=model patterns=
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) sed -n '2,/^set -u/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
    --revision) [ $# -ge 2 ] || usage "--revision needs a branch, tag or commit"; revision=$2; shift ;;
    --revision=*) revision=${1#*=} ;;
    --dataset) kind=datasets what='data set' ;;
    --include) [ $# -ge 2 ] || usage "--include needs a pattern, such as 'data/train-*'"; patterns="$patterns $2"; shift ;;
    --include=*) patterns="$patterns ${1#*=}" ;;
    -*) usage "unknown flag $1" ;;
    *) if [ -z "$repo" ]; then repo=$1; elif [ -z "$dir" ]; then dir=$1; else usage "unexpected argument $1"; fi ;;
    esac
    shift
done
[ -n "$dir" ] || usage "a repository and a folder are needed"
case $repo in
*[!A-Za-z0-9._/-]* | */*/* | /* | */ | *..*) usage "\"$repo\" is no repository's name; expected OWNER/NAME" ;;
*/*) ;;
*) usage "\"$repo\" is no repository's name; expected OWNER/NAME" ;;
esac
case $revision in
'' | *[!A-Za-z0-9._/-]* | *..*) usage "\"$revision\" is no branch, tag or commit" ;;
esac
case $patterns in
*[!A-Za-z0-9._/*?\ =-]*) usage "--include$patterns: a pattern has letters, digits, . _ - / = * and ?" ;;
?*) [ $kind = datasets ] || usage "--include is for --dataset; of a model all files that a recipe reads are taken" ;;
esac
page_of=$repo
[ $kind = models ] || page_of=datasets/$repo
case $dir in -*) dir=./$dir ;; esac
endpoint=${HF_ENDPOINT:-https://huggingface.co}
endpoint=${endpoint%/}
case $endpoint in
*[!A-Za-z0-9._:/-]*) usage "HF_ENDPOINT \"$endpoint\" is no plain URL" ;;
http://?* | https://?*) ;;
*) usage "HF_ENDPOINT \"$endpoint\" does not begin with https:// or http://" ;;
esac
case ${HF_TOKEN:-} in *[!A-Za-z0-9._~+/=-]*) usage "HF_TOKEN holds characters that no token has; is a line end in it?" ;; esac
command -v curl >/dev/null 2>&1 || die "curl is not installed (Debian: apt-get install curl)"
command -v flock >/dev/null 2>&1 || die "flock is not installed (Debian: apt-get install util-linux)"

made=
[ -e "$dir" ] || made=1
mkdir -p "$dir/.cache/huggingface/download" || die "cannot make the folder $dir"
cache=$dir/.cache/huggingface/download
[ -f "$dir/.cache/huggingface/.gitignore" ] || echo '*' >"$dir/.cache/huggingface/.gitignore"
# One at a time. What a killed one left is removed.
exec 9>"$cache/.lock" || die "cannot write to $dir"
flock -n 9 || die "another $name brings files to $dir; wait until it is done"
tmp=$cache/.tmp
rm -rf "$tmp" && mkdir "$tmp" || die "cannot make a temporary folder in $cache"
# If nothing was fetched, no folder stays behind.
clean() {
    rm -rf "$tmp"
    [ -z "$made" ] || [ -n "$(find "$dir" -type f ! -path '*/.cache/huggingface/.gitignore' ! -name .lock | head -n 1)" ] || rm -rf -- "$dir"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

origin() { echo "$1" | sed 's|^\([a-z]*://[^/?#]*\).*|\1|'; }

# request URL CURL_ARGUMENTS... - one request, no redirects followed; the HTTP code, or 000, goes into $code, curl's
# exit code into $curl. URL and token reach curl through its standard input: command lines are everybody's to read.
# The token goes to the hub's own origin only.
request() {
    url=$1
    shift
    case $url in *[\"\\\ ]* | *[![:print:]]*) die "the hub sent an address that cannot be right: $(echo "$url" | tr -cd '[:print:]' | cut -c1-200)" ;; esac
    {
        printf 'url = "%s"\n' "$url"
        if [ -n "${HF_TOKEN:-}" ] && [ "$(origin "$url")" = "$(origin "$endpoint")" ]; then
            printf 'header = "Authorization: Bearer %s"\n' "$HF_TOKEN"
        fi
    } | curl -q --config - --globoff --proto '=http,https' --connect-timeout 20 --speed-limit 1 --speed-time 60 \
        -A tune.c --suppress-connect-headers -w '%{http_code}' "$@" >"$tmp/code"
    curl=$?
    code=$(cat "$tmp/code")
}

# explain WHAT - end with what the last request met.
explain() {
    case $code in
    401 | 403)
        if [ -n "${HF_TOKEN:-}" ]; then
            die "$1: the hub refuses (HTTP $code): accept the licence on $endpoint/$page_of with the account HF_TOKEN belongs to, and check the token and the name"
        fi
        die "$1: the hub refuses (HTTP $code): no such $what, or it is private or gated. For a gated one accept its licence on $endpoint/$page_of and set HF_TOKEN"
        ;;
    404) die "$1: not found (HTTP 404): check the name, and --revision (\"$revision\")" ;;
    429) die "$1: too many requests (HTTP 429): wait, or set HF_TOKEN" ;;
    000 | '' | 2*) ;;
    *) die "$1: the hub answers HTTP $code" ;;
    esac
    case $curl in
    5 | 6) die "$1: cannot find the host of $endpoint: is there a network?" ;;
    7) die "$1: cannot connect to $(origin "$url"): is there a network?" ;;
    23) die "$1: cannot write to $dir: is the disk full?" ;;
    35 | 51 | 58 | 60 | 77) die "$1: no trusted connection to $(origin "$url") (curl exit $curl): are the certificates installed (Debian: ca-certificates) and the clock right?" ;;
    *) die "$1: the connection broke (curl exit $curl); run the same command again to go on" ;;
    esac
}

# api PATH FILE - an answer of the hub into FILE, tried again where the network fails.
api() {
    tries=0
    while :; do
        request "$endpoint/api/$kind/$repo/$1" -sS -D "$tmp/headers" --max-filesize 50000000 -o "$2" 2>"$tmp/error"
        [ "$curl" = 0 ] && [ "$code" = 200 ] && return 0
        tries=$((tries + 1))
        case $code in 000 | 5*) [ $tries -lt $retries ] && [ "$curl" != 6 ] && [ "$curl" != 7 ] && [ "$curl" != 60 ] && sleep 1 && continue ;; esac
        explain "$repo"
    done
}

# Reads JSON by the pieces between quotation marks: no JSON tool is part of a bare system, and a set may have 300,000 files.
# want=sha: the commit. Else a line "size hash name" for each file, and "-" for what the hub does not say. Bytes of names that
# are no printable ASCII become "?".
cat >"$tmp/json.awk" <<'AWK'
BEGIN { RS = "\""; inside = depth = 0; pending = 0 }
inside { # a piece of a string: it goes on behind \"
    s = s == "" ? $0 : length(s) < 8192 ? s $0 : s
    if (index($0, "\\") && match($0, /\\+$/) && RLENGTH % 2 == 1) { if (length(s) < 8192) s = s "\""; next }
    inside = 0; pending = 1
    next
}
pending && $0 == ":" { pending = 0; key[depth] = s; s = ""; inside = 1; next } # most pieces are these two
pending && $0 == "," { pending = 0; value(s); s = ""; inside = 1; next }
{
    if (/[ \t\r\n]/) gsub(/[ \t\r\n]+/, "")
    n = length($0)
    for (i = 1; i <= n; i++) {
        c = substr($0, i, 1)
        if (pending) { pending = 0; if (c == ":") { key[depth] = s; continue } value(s) }
        if (c == "{" || c == "[") { if (++depth > 64) exit 1; key[depth] = "" }
        else if (c == "}" || c == "]") { if (--depth < 0) exit 1; if (depth == 1 && c == "}") end_of_file() }
        else if (c ~ /[0-9]/) {
            for (from = i; i < n && substr($0, i + 1, 1) ~ /[0-9.eE+-]/; i++);
            value(substr($0, from, i - from + 1 > 40 ? 40 : i - from + 1))
        }
    }
    s = ""; inside = 1
}
END { if (depth != 0 || (inside && s != "")) exit 1 }
function clean(t) { # no name that we take has an escaped character
    if (length(t) > 4096) t = substr(t, 1, 4096)
    if (index(t, "\\")) { gsub(/\\["\\\/]/, "?", t); gsub(/\\u..../, "?", t); gsub(/\\/, "?", t) }
    if (t ~ /[^ -~]/) gsub(/[^ -~]/, "?", t)
    return t
}
function value(v) {
    if (want == "sha") { if (depth == 1 && key[1] == "sha" && !found) { print substr(v, 1, 80); found = 1 } return }
    if (depth == 2) {
        k = key[2]
        if (k == "type") type = v; else if (k == "path") path = clean(v)
        else if (k == "size") size = substr(v, 1, 40); else if (k == "oid") oid = substr(v, 1, 80)
    } else if (depth == 3 && key[2] == "lfs" && key[3] == "oid") { lfs = substr(v, 1, 80); sub(/^sha256:/, "", lfs) }
}
function end_of_file() {
    if (want == "files" && type == "file" && path != "")
        print (size == "" ? "-" : size), (lfs != "" ? lfs : oid != "" ? oid : "-"), path
    type = path = size = oid = lfs = ""
}
AWK
json() { awk -v want="$2" -f "$tmp/json.awk" "$1" || die "$repo: the hub's answer is no JSON"; }

# The commit, so that every file comes from the same one whatever is pushed meanwhile.
encoded=$(echo "$revision" | sed 's|/|%2F|g')
api "revision/$encoded" "$tmp/model"
commit=$(json "$tmp/model" sha) || exit 1
case $commit in *[!0-9a-f]* | '') die "$repo: the hub names no commit for \"$revision\"" ;; esac
[ ${#commit} -le 64 ] || die "$repo: the hub names no commit for \"$revision\""

# The files, by the page.
page="tree/$commit?recursive=true"
pages=0
while [ -n "$page" ]; do
    api "$page" "$tmp/tree"
    json "$tmp/tree" files >>"$tmp/files"
    page=$(sed -n 's/^[Ll][Ii][Nn][Kk]:.*<[^>]*\/\(tree\/[^>]*\)>; *rel="next".*/\1/p' "$tmp/headers" | tr -d '\r' | head -n 1)
    pages=$((pages + 1))
    [ $pages -lt 100 ] || die "$repo: more than 100 pages of files"
done
# Those that we take, into wanted. Of a data set: files of rows. Of a model: what a recipe reads.
cat >"$tmp/take.awk" <<'AWK'
BEGIN {
    count = split(patterns, pattern, " ")
    for (p = 1; p <= count; p++) {
        gsub(/\./, "[.]", pattern[p]); gsub(/\*/, ".*", pattern[p]); gsub(/\?/, ".", pattern[p])
    }
}
function asked(f,    p) {
    for (p = 1; p <= count; p++) if (f ~ "^" pattern[p] "$") return 1
    return count == 0
}
function rows_in(f) {
    if (f ~ /^[.-]|\/[.-]|\/\/|^\//) return 0 # a name we would not write
    if (f ~ /(^|\/)(dataset_infos|dataset_info|dataset_dict|state)\.json$/ && f != "state.json") return 0
    if (f !~ /\.parquet$/ && (parquet > 0 || f !~ /\.(jsonl|ndjson|json|csv|tsv|txt)$/)) return 0
    if (f ~ /[^A-Za-z0-9._\/=-]/) { strange++; return 0 }
    return asked(f)
}
function of_model(f) {
    if (f ~ /[^A-Za-z0-9._-]|^[.-]|^consolidated/) return 0 # of a sub-folder; a name we would not write; the same weights once more
    return f ~ /^(config|generation_config|vocab|added_tokens|special_tokens_map|chat_template|adapter_config)\.json$/ ||
        f ~ /^tokenizer.*\.json$/ || f == "tokenizer.model" || f == "merges.txt" || f == "chat_template.jinja" ||
        f ~ /\.safetensors(\.index\.json)?$/ || f ~ /^(README\.md|LICENSE(\.txt|\.md)?)$/
}
{
    file = substr($0, length($1) + length($2) + 3)
    if (kind == "models" ? !of_model(file) : !rows_in(file)) next
    if ($1 !~ /^[0-9]+$/ || length($1) > 15) { print "the hub gives no size for " file >wrong; exit 1 }
    if ($2 !~ /^[0-9a-f]+$/ || (length($2) != 40 && length($2) != 64)) { print "the hub gives no hash for " file >wrong; exit 1 }
    print $1, $2, file
    taken[file] = 1
}
END {
    for (file in taken) # a file cannot be the folder of another
        for (folder = file; sub(/\/[^\/]*$/, "", folder) && !(folder in seen); seen[folder])
            if (folder in taken) { print "the hub lists " file ", and a file " folder >wrong; exit 1 }
    if (strange) print strange >left_out
}
AWK
touch "$tmp/files" "$tmp/left_out"
awk -v kind="$kind" -v patterns="$patterns" -v parquet="$(grep -c '\.parquet$' "$tmp/files")" -v wrong="$tmp/wrong" -v left_out="$tmp/left_out" \
    -f "$tmp/take.awk" "$tmp/files" >"$tmp/wanted" ||
    die "$repo: $(cat "$tmp/wrong")"
[ ! -s "$tmp/left_out" ] || echo "$repo: left out: $(cat "$tmp/left_out"), for names with other characters than letters, digits, . _ - and =" >&2
if [ $kind = datasets ]; then
    [ -s "$tmp/wanted" ] || [ -z "$patterns" ] || die "$repo: no file of rows fits --include$patterns; it has $(cut -d ' ' -f 3- "$tmp/files" | head -n 8 | cut -c1-200 | tr '\n' ' ')"
    [ -s "$tmp/wanted" ] || die "$repo: it holds no Parquet, JSON, CSV or text files at \"$revision\"; its copy on the Hub may: --revision refs/convert/parquet"
else
    grep -q ' config\.json$' "$tmp/wanted" || grep -q ' adapter_config\.json$' "$tmp/wanted" ||
        die "$repo: no config.json among its files; is it a model for transformers?"
    grep -q '\.safetensors$' "$tmp/wanted" || die "$repo: it holds no safetensors weights at \"$revision\"; other formats are not read"
fi

# hash_of FILE LIKE - the file's hash of the kind LIKE is: 64 digits sha256, 40 git's of a blob.
hash_of() {
    if [ ${#2} = 64 ]; then
        sha256sum <"$1" | cut -d ' ' -f 1
    else
        { printf 'blob %s\0' "$(size_of "$1")"; cat "$1"; } | sha1sum | cut -d ' ' -f 1
    fi
}
size_of() { wc -c <"$1" | tr -d ' '; }

# in_folder PATH - make the folder of a file.
in_folder() { mkdir -p "${1%/*}" || die "cannot make the folder ${1%/*}"; }

# First what is here: a conflict should not show after ten gigabytes. Only names that are here are looked at one by one.
here() { (cd "$1" && find . ! -type d ! -path './.cache/*' | sed 's|^\./||'); }
here "$dir" >"$tmp/here"
awk 'FILENAME == list { here[$0] = 1; next } { file = $0; sub(/^[^ ]* [^ ]* /, "", file); print >((file in here) ? there : missing) }' \
    list="$tmp/here" there="$tmp/there" missing="$tmp/missing" "$tmp/here" "$tmp/wanted"
touch "$tmp/there" "$tmp/missing"
while read -r size hash file; do
    if [ -f "$dir/$file" ] && [ "$(size_of "$dir/$file")" = "$size" ] && [ "$(hash_of "$dir/$file" "$hash")" = "$hash" ]; then
        echo "$file: here already"
        in_folder "$cache/$file"
        printf '%s\n%s\n%s\n' "$commit" "$hash" "$(date +%s)" >"$cache/$file.metadata"
        continue
    fi
    case $kind/$file in
    models/README.md | models/LICENSE*) echo "$file: another one is here; it stays" && continue ;;
    esac
    die "$dir/$file is there and differs from the hub's at \"$revision\"; nothing was changed. Move it away, or choose another folder"
done <"$tmp/there" || exit 1
cut -d ' ' -f 3- "$tmp/missing" | sed -n 's|/[^/]*$||p' | sort -u | while read -r folder; do
    mkdir -p "$dir/$folder" "$cache/$folder" || exit 1
done || die "cannot make a folder in $dir"
needed=$(awk '{ all += $1 } END { printf "%.0f", all }' "$tmp/missing")
have=$(find "$cache" -name '*.incomplete' -type f -exec cat {} + | wc -c)
needed=$((needed > have ? needed - have : 0))
room=$(df -Pk "$dir" | awk 'NR == 2 { print $4 }')
if [ -n "$room" ] && [ $((needed / 1024)) -gt "$room" ]; then
    die "$dir: $((needed / 1048576)) MiB are to come, the disk has $((room / 1024)) MiB free"
fi

# locate FILE HASH - where the file's bytes are, into $url: by HEAD, following redirects ourselves while they stay on the
# hub. An address elsewhere is taken as it is: signed ones often allow nothing but GET, and their ETag is their own.
locate() {
    url=$endpoint/$page_of/resolve/$commit/$(echo "$1" | sed 's|=|%3D|g')
    hops=0
    while :; do
        request "$url" -sS -I -o "$tmp/headers" 2>"$tmp/error"
        [ "$curl" = 0 ] || return 1
        etag=$(header X-Linked-Etag)
        [ -n "$etag" ] || case $code in 2*) etag=$(header ETag) ;; esac
        etag=$(echo "$etag" | sed 's|^W/||; s|^"||; s|"$||')
        case $etag in
        *[!0-9a-f]*) ;;
        *) case ${#etag} in 40 | 64) [ "$etag" = "$2" ] || die "$1: the hub lists the hash $2 but sends $etag; try again later" ;; esac ;;
        esac
        case $code in
        2*) return 0 ;;
        301 | 302 | 303 | 307 | 308) ;;
        5*) return 1 ;;
        *) explain "$1" ;;
        esac
        to=$(header Location)
        case $to in
        https://*) url=$to ;;
        http://*)
            case $url in https://*) die "$1: the hub redirects to an unencrypted address" ;; esac
            url=$to
            ;;
        //*) url=${url%%//*}$to ;;
        /*) url=$(origin "$url")$to ;;
        *) die "$1: the hub redirects to nowhere" ;;
        esac
        [ "$(origin "$url")" = "$(origin "$endpoint")" ] || return 0
        hops=$((hops + 1))
        [ $hops -lt 8 ] || die "$1: the hub redirects in circles"
    done
}
header() { awk -v name="$1" 'tolower(substr($0, 1, length(name) + 1)) == tolower(name) ":" { sub(/^[^:]*:[ \t]*/, ""); sub(/[ \t\r]*$/, ""); print; exit }' "$tmp/headers"; }

# bound SIZE COMMAND... - what the command writes into a file has at most that size and a few KiB: a host may send bytes
# without end, and say no length.
bound() {
    limit=$(($1 / 512 + 8))
    shift
    (trap '' XFSZ; ulimit -f $limit; "$@"; echo "$curl" >"$tmp/curl")
    curl=$(cat "$tmp/curl") code=$(cat "$tmp/code")
}

# fetch SIZE HASH FILE
fetch() {
    part=$cache/$3.$2.incomplete
    tries=0
    while :; do
        have=0
        [ -f "$part" ] && have=$(size_of "$part")
        if [ "$have" -gt "$1" ]; then
            rm -f "$part"
            have=0
        fi
        [ "$have" = "$1" ] && [ -f "$part" ] && break
        if locate "$3" "$2"; then
            if [ -t 2 ]; then bar=--progress-bar; else bar=-sS; fi
            # On another host, where no token is sent, curl may follow what redirects there are.
            follow=
            [ "$(origin "$url")" = "$(origin "$endpoint")" ] || follow="-L --max-redirs 8 --proto-redir =${url%%:*},https"
            # shellcheck disable=SC2086
            bound "$1" request "$url" "$bar" $follow --fail --max-filesize "$1" -C - -o "$part" 2>"${tty:-$tmp/error}"
            if [ -f "$part" ] && [ "$(size_of "$part")" -gt "$1" ]; then
                rm -f "$part"
                die "$3: the host sends more than the $1 bytes the hub lists"
            fi
            case $curl in
            0) [ "$1" = 0 ] && : >>"$part" ;; # an empty file
            33 | 36) rm -f "$part" ;; # no ranges there: from the beginning
            23) explain "$3" ;;
            63) die "$3: the host sends more than the $1 bytes the hub lists" ;;
            22) case $code in 416) rm -f "$part" ;; 408 | 429 | 5*) ;; *) explain "$3" ;; esac ;;
            esac
        fi
        [ -f "$part" ] && [ "$(size_of "$part")" = "$1" ] && break
        now=0
        [ -f "$part" ] && now=$(size_of "$part")
        # a hundredth of the file, or 1 MiB, is progress, and no failure
        if [ $((now - have)) -gt $(($1 / 100)) ] || [ $((now - have)) -ge 1048576 ]; then tries=0; else tries=$((tries + 1)); fi
        [ $tries -lt $retries ] || explain "$3"
        echo "$3: the connection broke at $now of $1 bytes; going on" >&2
        sleep 1
    done
    if [ "$(hash_of "$part" "$2")" != "$2" ]; then
        rm -f "$part"
        die "$3: what came is not what the hub lists (its hash differs); it was removed, run the same command again"
    fi
    mv -T "$part" "$dir/$3" || die "cannot write $dir/$3"
    printf '%s\n%s\n%s\n' "$commit" "$2" "$(date +%s)" >"$cache/$3.metadata"
    echo "$3: $1 bytes"
}

tty=
[ -t 2 ] && tty=/dev/stderr
echo "$repo at $commit: $(wc -l <"$tmp/missing" | tr -d ' ') files, $((needed / 1048576)) MiB to come"
while read -r size hash file; do
    fetch "$size" "$hash" "$file" </dev/null || exit 1
done <"$tmp/missing"
echo "$dir is complete"
