# mutants.awk LIST - reads the list of mutants (tests/mutants/mutants.txt says how it is written) in the root of a tree.
# Prints a line per mutant: number, file, line, tests, why it is equivalent or "", the change; between tabs.
# With -v into=FOLDER it writes each mutant's whole file to FOLDER/number. Errors go to stderr; then it ends with 1.
function error(text) {
    print FILENAME ":" FNR ": " text > "/dev/stderr"
    errors++
}
function content(path, line, text) {
    while ((getline line < path) > 0) text = text line "\n"
    close(path)
    return text
}
function flush_mutant() {
    if (waiting != "") print waiting "\t" why "\t" change
    waiting = why = ""
}
BEGIN { FS = "\n" }
/^#/ || /^ *$/ { next }
/^file / {
    flush_mutant()
    path = substr($0, 6)
    tests = ""
    source = content(path)
    if (source == "") error(path " is not there")
    next
}
/^tests / {
    flush_mutant()
    tests = substr($0, 7)
    n = split(tests, name, / /)
    for (i = 1; i <= n; i++) {
        if (name[i] ~ /@/ && name[i] !~ /^[a-z_]+\/test_[a-z_0-9]*(:[^@]*)?@(far|avx2)$/)
            error(name[i] ": expected core/test_x@far, core/test_x:y@far or @avx2")
        sub(/@.*/, "", name[i])
        text = "tests/" name[i] (name[i] ~ /\.sh$/ ? "" : name[i] ~ /^cuda_on_cpu\// ? ".cu" : ".c")
        sub(/:.*\.c$/, ".c", text)
        if (content(text) == "") error(text " is not there")
    }
    next
}
/^= / {
    if (waiting == "") error("an equivalent mutant's reason stands below it")
    why = substr($0, 3)
    next
}
/^- / {
    flush_mutant()
    change = substr($0, 3)
    number++
    at = index(change, " ==>")
    if (!at) { error("expected: - OLD ==> NEW"); next }
    old = substr(change, 1, at - 1)
    new = substr(change, at + 4)
    sub(/^ /, "", new)
    gsub(/@@/, "\n", old)
    gsub(/@@/, "\n", new)
    begin = index(source, old)
    if (path == "" || tests == "") { error("file and tests stand above the mutants"); next }
    if (old == "" || old == new) { error("it changes nothing"); next }
    if (!begin) { error(path " does not have: " old); next }
    if (index(substr(source, begin + 1), old)) { error(path " has it more than once: " old); next }
    if ((path, change) in seen) { error("it stands here twice"); next }
    seen[path, change]
    before = substr(source, 1, begin - 1)
    if (into) {
        printf "%s%s%s", before, new, substr(source, begin + length(old)) > (into "/" number)
        close(into "/" number)
    }
    waiting = number "\t" path "\t" (gsub(/\n/, "\n", before) + 1) "\t" tests
    next
}
{ error("expected a line that begins with \"file \", \"tests \", \"- \", \"= \" or \"#\"") }
END {
    flush_mutant()
    exit errors > 0
}
