# flips.sh - sourced: a disk that writes another bit than it was told, at each write of a run with one save.
# wrong_bits FILE - the function small PREFIX... runs a recipe, after the words PREFIX, with the output folder "flipped". A run that
# ends well has saved FILE as it was. One that notices has no checkpoint; at least one does.
flips() {
    cp -r flipped/checkpoint-1 sound
    noticed=0
    for n in $(seq "$(cat calls)"); do
        small ./fault FLIP "$n"
        code=$?
        if [ $code = 0 ]; then
            cmp "sound/$1" "flipped/checkpoint-1/$1" || return 1
        elif grep -q "checkpoint-1.tmp-[0-9]*.*, read again, is not what was saved" flipped.out; then
            [ ! -e flipped/checkpoint-1 ] && noticed=$((noticed + 1)) || return 1
        elif [ $code -gt 128 ]; then
            return 1
        fi
    done
    echo "$noticed noticed of $(cat calls)"
    [ "$noticed" -ge 1 ]
}
wrong_bits() {
    if $CC -std=c11 -D_GNU_SOURCE -O1 -o fault "$here/tests/faults/fault.c"; then
        small ./fault COUNT 0 9>calls
        case $? in
        0) is "a save that is not what was trained ends the run" flips "$1" ;;
        77) skip "a save that is not what was trained" "this system does not let programs be traced" ;;
        *) is "a run that is traced" false ;;
        esac
    else
        is "fault.c is compiled" false
    fi
}
