# tip.sh - run what a message says to type. Sourced after tap.sh. tests/tree/test_tips.sh finds messages that no tip has.
#   tip 'give <--temperature> above 0, such as <0\.8>' COMMAND...
# COMMAND prints a text that matches the pattern (ERE, < and > left out). What stands between < and > there is the line to
# type. An option is added to COMMAND, or to $ALONE where that is set. A program (samples, build/x) is run instead. It must
# end with 0, without that message. PUT: a sed script for what the user fills in, such as s/FILE/rows.jsonl/.
# SAID_AGAIN: the message may come again. CODE: the exit code that is right.
typed() { # PATTERN FILE - the line to type, from what was printed
    pattern=$(printf '%s' "$1" | sed 's/</(/g; s/>/)/g') parts=$(printf '%s' "$1" | tr -cd '<' | wc -c)
    groups=$(seq "$parts" | sed 's/^/\\/' | tr '\n' ' ')
    sed -E 's/^#   +/ /' "$2" | tr -s '\n ' '  ' | grep -oE -e "$pattern" | head -n 1 | sed -E "s~^.*$pattern.*\$~$groups~" | sed -E "$PUT"
}
follow() { # PATTERN COMMAND...
    advice=$1
    shift
    "$@" >"$tmp/advised" 2>&1 </dev/null
    line=$(typed "$advice" "$tmp/advised")
    [ -n "$line" ] || { echo "no such advice in:"; cat "$tmp/advised"; return 1; }
    echo "typed: $line"
    case $line in
    -*) [ -z "$ALONE" ] || set -- $ALONE
        eval "set -- \"\$@\" $line" ;;
    *)  eval "set -- $line"
        program=$BUILD/${1#build/} && shift && set -- "$program" "$@" ;;
    esac
    "$@" >"$tmp/followed" 2>&1 </dev/null
    code=$?
    [ $code = "${CODE:-0}" ] || { echo "exit code $code:"; cat "$tmp/followed"; return 1; }
    [ -z "$(typed "$advice" "$tmp/followed")" ] || [ -n "$SAID_AGAIN" ] || { echo "said again:"; cat "$tmp/followed"; return 1; }
}
tip() { is "$1" follow "$@"; }
