#!/bin/sh
# test_tips.sh - every message that says what to type is followed by a test: the patterns of `tip` in tests/tips/ match it, or
# tests/tips/untyped.txt says why none does.
. tests/tap.sh

# literals FILE... - the string literals, those side by side as one, each after its file and a tab. Options that the library
# names in back quotes are as programs print them; what printf fills in is %.
literals() {
    for f in "$@"; do
        tr '\n' '\001' <"$f" | sed -E "s/'\\\\?\"'/'q'/g; s/\\\\\"/\\x02/g; s@/\\*[^*]*\\*+([^/*][^*]*\\*+)*/@@g; s/\"[ \\x01]*\"//g" |
            grep -oE '"[^"]+"' | tr '\001\002' ' "' | sed -E 's/^"//; s/"$//; :a; s/`([a-z-]*)_([a-z_-]*)`/`\1-\2`/; ta; s/`([a-z-]+)`/--\1/g; s/%%/\x03/g; s/%[-+#0-9.*]*(ll|z|l)?[a-zA-Z]/%/g; s/\x03/%/g; s/\\n/ /g; s/ +/ /g' |
            grep -E "$opt" | sed "s|^|$f\t|"
    done
}
opt='(--[a-z]|build/[a-z]|tools/[a-z]|\bsamples (show|stats|best|rows|check|import|merge|missing|entity|trace|plot|effect|predict|compare)\b|\bsweep (-|SPACE)|\bspace (list|check|describe|experiments|template)\b|make (build|[A-Z]+=))'
verb='\b([Gg]ive|[Tt]ry|add|[Ss]ay|choose|name|[Uu]se|lower|raise|larger|take|go on|went on|on the command line|again with|save with|look at|see|get it|resume|or|with|by|asked|such as|expected:)'
# advice FILE - of those lines, the ones that tell what to type: an option behind such a word or a colon, a semicolon, a
# bracket; a command. What is to be left out is nothing to type.
advice() {
    sed -E 's/[;,.(] (and )?leave [^;]* out//g; s/leave one of them out//' "$1" |
        grep -nE "$verb( [^;.:(]*)? $opt|[;:,(?] ?$opt|	[ ;,#]*$opt[a-z-]* *[^:]*(parts|takes|shows|needs|ends|chooses|says|names|lists|leaves)|	.*$opt[^	]*[ =](%|[A-Z]+).*--|	.*(build/|tools/)[a-z]" |
        sed 's/:.*/p/' | sed -n -f - "$1"
}
# patterns - of all tips, for literals: what is filled in is %; what comes after the option may stand in another one.
patterns() {
    sed -nE "s/^.*\btip '([^']*)'.*/\1/p" tests/tips/test_*.sh | tr '|' '\n' | sed -E 's/[<>]//g; s/\[0-9\.?\]\+/%/g' |
        sed -E 's/^(.*(--[a-z]|build\/|samples |sweep |space )[a-z-]*)( [^*.[]*)?(\[\^|\.\*|%).*$/&\n\1/' | awk 'length >= 14'
}
files=$(find components recipes tools -name '*.[ch]' | grep -v -e flags/help.c -e flags/flags.h -e flags/aliases.c)
literals $files >"$tmp/literals"
advice "$tmp/literals" >"$tmp/advice"
patterns >"$tmp/patterns"
sed '/^##/d; /^$/d' tests/tips/untyped.txt >"$tmp/untyped"
is "messages and tips are found" eval '[ "$(wc -l <"$tmp/advice")" -gt 150 ] && [ "$(wc -l <"$tmp/patterns")" -gt 100 ]'
none "every message that says what to type is followed by a test: a tip in tests/tips, or a reason in untyped.txt" "$(grep -vE -f "$tmp/patterns" "$tmp/advice" | grep -vF -f "$tmp/untyped")"
none "no reason for a message that is not there" "$(while IFS= read -r line; do grep -qF -- "$line" "$tmp/literals" || echo "$line"; done <"$tmp/untyped")"
none "none for one that a test follows" "$(grep -E -f "$tmp/patterns" "$tmp/advice" | cut -f2- | grep -F -f "$tmp/untyped")"
printf 'int f(void)\n{\n    /* "give --comment 1" */\n    return tune_error_usage("%%s is wrong; give "\n                            "`new_option` %%d", x);\n}\n' >"$tmp/new.c"
is "a new message is found, over two literals, by its option's name as it is printed" eval 'literals "$tmp/new.c" >"$tmp/new" && advice "$tmp/new" >"$tmp/found" && cat "$tmp/found" && [ "$(cut -f2 "$tmp/found")" = "% is wrong; give --new-option %" ] && ! grep -qE -f "$tmp/patterns" "$tmp/found"'
finish
