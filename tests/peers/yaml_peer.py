"""Our YAML reader against PyYAML's safe loader: the same tree, keys in the same order, or both refuse.

Hand-picked documents by name; plain scalars made of the characters that numbers, booleans and times are made of; trees
written by PyYAML in all its styles; damaged copies of all of them. PyYAML has two scanners, its own and libyaml, which do
not agree on all broken documents: ours is libyaml, so where we differ from the first, the second must be with us. Where we
are stricter or not, only for the reasons below, which components/files/document.h states.
"""
import datetime
import json
import math
import os
import random
import subprocess
import tempfile

import tap
import yaml

OURS = os.path.join(os.environ.get("BUILD", "build"), "tests/peers/yaml_peer")
STRICTER = ("stands twice", "is no text to YAML", "a key must be a text", "beyond 64 bits", "moment in time", "is not known here",
            "NUL character", "nested deeper", "a second document", "does not fit what follows", "as its tag !!", "within its own anchor")
# A date that is none, and the scalar =, are texts to us.
LAXER = ("is out of range", "month must be in", "day is out", "year 0", "tag:yaml.org,2002:value", "could not determine a constructor for the tag 'tag:yaml.org,2002:value'")


def theirs(data, loader):
    """(tree, None) or (None, why)."""
    try:
        return yaml.load(data, Loader=loader), None
    except RecursionError:
        return None, "recursion"
    except Exception as e:  # yaml.YAMLError, ValueError of int(), IndexError of an empty one, UnicodeDecodeError
        return None, f"{type(e).__name__} {e}"


def plain(value):
    """The tree as we print it; raises on what we have no value for."""
    if isinstance(value, dict):
        if not all(isinstance(k, (str, datetime.date)) and not isinstance(k, datetime.datetime) for k in value):
            raise ValueError("a key that is no text")
        return {plain(k): plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value.isoformat()
    if value is None or isinstance(value, (bool, float, str)) or (isinstance(value, int) and -2**63 <= value < 2**63):
        return value
    raise ValueError(f"{type(value)}")


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def agree(ours, data, loader):
    tree, why = theirs(data, loader)
    if ours.startswith("tree "):
        if why is not None:
            return any(s in why for s in LAXER)
        try:
            return same(json.loads(ours[5:]), plain(tree))
        except ValueError:
            return False
    return why is not None or any(s in ours for s in STRICTER)


def judge(documents):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, data in enumerate(documents):
            paths.append(os.path.join(folder, f"{i}.yaml"))
            with open(paths[-1], "wb") as f:
                f.write(data)
        run = subprocess.run([OURS], input="\n".join(paths), capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=300)
    lines = run.stdout.split("\n")[:-1]
    assert run.returncode == 0 and len(lines) == len(documents), (run.returncode, len(lines), run.stderr[-500:])
    return lines


def disagreement(documents):
    """The first document on which neither of PyYAML's scanners is with us."""
    for data, ours in zip(documents, judge(documents)):
        if agree(ours, data, yaml.SafeLoader) or agree(ours, data, yaml.CSafeLoader):
            continue
        return f"{data!r}\n# we      {ours}\n# PyYAML  {theirs(data, yaml.SafeLoader)}\n# libyaml {theirs(data, yaml.CSafeLoader)}"


CASES = {
    "nothing": "", "a comment": "# x\n", "an empty document": "---\n", "end marks": "--- a\n...\n", "two documents": "a\n---\nb\n",
    "booleans": "[yes, Yes, YES, yEs, no, No, NO, on, On, ON, oN, off, Off, OFF, true, True, TRUE, tRue, false, False, FALSE, y, n, Y, N, t, f]",
    "nothings": "[~, null, Null, NULL, nUll, '', none, None, nil]", "ints": "[0, 00, 0_, 1_000, +1, -1, 0x1F, 0X1F, -0xf_f, 0b101, 0B1, 0o17, 010, 08, 0_7]",
    "sixties": "[1:30, 1:30:5, 190:20:30, -1:30, 1:60, 0:30, 01:30, 1:5, 1:3x, 1:30.5, 0:30.25, 1:2.5e+1, 190:20:30.15]",
    "floats": "[1., .5, -.5, +.5, 1.5e5, 1.5e+5, 1e5, 1e+5, 1.e+1, 1_0.5, 6.8523015e+5, 685_230.15, 0., 00.5, -0.0, 1.0e-400, 1.0e+400, .e+1, 1.5E-05]",
    "infinities": "[.inf, -.inf, +.inf, .Inf, .INF, .iNf, .nan, .NaN, .NAN, -.nan, inf, nan]", "versions": "[2.8.2, v1.0.0, 1.0, '1.0', 1-2, 3.11.7]",
    "ids that look like numbers": "[310e50, 310050, 1e2345, 0e1234, 12345e, 9e9, '310e50', 0x310, 1_2_3]",
    "limits": "[9223372036854775807, -9223372036854775808]", "beyond 64 bits": "9223372036854775808", "beyond them below": "-9223372036854775809",
    "dates": "[2024-01-01, 2024-1-1, 2024-12-31, '2024-01-01']", "no date": "2024-13-45", "moment": "2001-12-14t21:59:43.10-05:00",
    "moments": "[2001-12-14 21:59:43.10 -5]", "moment Z": "2001-12-15T2:59:43.1Z", "no moment": "2001-12-14 21:59", "value": "=",
    "merge": "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3, z: 4}\n", "merge behind": "a: &a {x: 1, y: 2}\nb: {y: 3, <<: *a, z: 4}\n",
    "merge a list": "- &a {x: 1, y: 2}\n- &b {x: 5, w: 6}\n- {<<: [*a, *b], q: 1}\n- {<<: [*b, *a], y: 0}\n", "merge in merge": "- &a {x: 1}\n- &b {<<: *a, y: 2}\n- {z: 0, <<: *b}\n",
    "merge a map in place": "{<<: {a: 1, b: 2}, b: 3}", "merge no map": "{<<: 1}", "merge no maps": "{<<: [1]}", "merge nothing": "{<<: [], a: 1}", "merge quoted": "{'<<': 1}",
    "merge twice": "- &a {x: 1}\n- {<<: *a, <<: {y: 2}}", "aliases": "a: &x [1, {b: 2}]\nb: *x\nc: [*x, *x]\n", "alias without anchor": "[*x]", "two anchors": "[&x 1, &x 2]",
    "alias in itself": "&x [*x]", "alias as key": "- &k a\n- {*k : 1}\n", "duplicate key": "{a: 1, a: 2}", "int key": "{1: a}", "bool key": "{yes: a}", "none key": "{~: a}",
    "list key": "{[1]: a}", "date key": "{2024-01-01: a}", "tags": "[!!str 1, !!int '0x10', !!float 3, !!float 1e5, !!bool 'Yes', !!bool 'oFF', !!null x, !!seq [], !!map {}, ! 1, ! '1', !!str]",
    "wrong tags": "[!!int x]", "wrong tag 2": "!!float [1]", "wrong tag 3": "!!seq {}", "binary": "!!binary aGk=", "set": "!!set {a, b}", "omap": "!!omap [a: 1]", "python": "!!python/name:os.system ''",
    "unknown tag": "!x 1", "tag handle": "%TAG ! tag:yaml.org,2002:\n--- !str 1\n", "strings": "a: 'it''s'\nb: \"\\x41\\u00e9\\U0001F600\\n\\t\\\"\\/\"\nc: |\n  lines\n   more\n\nd: >-\n  folded\n  text\n\n  para\n",
    "plain lines": "a: b\n  c\n  d\nb: x # not\nc: x#y\nd: a:b\n", "flow over lines": "{a: [1,\n 2], b: {c: d,\n e}}\n", "nested": "- - 1\n  - 2\n-\n  - a: 1\n    b:\n    - x\n", "question marks": "? a\n: 1\n? b\n",
    "tab": "a:\n\t- 1", "bad indentation": "a: 1\n  b: 2\n", "colon": "a: b: c", "open": "[1, 2", "unclosed": "'a", "at": "@a", "percent": "%a", "backtick": "`a`", "escape": "\"\\q\"", "NUL": "\"\\0\"", "control": "\x01",
    "Windows lines": "a: 1\r\nb: |\r\n  x\r\n  y\r\n", "byte order mark": "\ufeffa: 1\n", "unicode": "é: ü\nk: 日本語 😀\n", "NEL": "a: b\u0085c\n", "line separator": "a: \"b\u2028c\"\n", "surrogates": "\"\\ud83d\\ude00\"",
    "ado's placeholder": "spaces:\n  - <will be set by ado>\n", "empty values": "a:\nb: ''\nc: []\nd: {}\ne: [,]\n", "trailing comma": "[a, b,]", "pair in list": "[a: 1, b: 2]", "question": "[? a : 1]", "many": "- " + "a\n- " * 5000,
}


def case(data):
    return disagreement([data.encode()])


def scalars():
    r = random.Random(1)
    alphabets = ["0123456789", "01234567_-+.:eE", "0123456789:._", "0xXaAfF_1b-+", "0123456789-: tTzZ.+", "tTrRuUeEyYsSnNoOfFaAlL~", ".iInNfFaA-+", "01:59.-"]
    documents = []
    for _ in range(12000):
        text = "".join(r.choices(r.choice(alphabets), k=r.randint(1, 9)))
        if r.random() < 0.2:
            text = f"{r.randint(1900, 2100)}-{r.randint(0, 14):02}-{r.randint(0, 33):02}" + r.choice(["", "", " 1:02:03", "T10:11:12.5Z", "x", "-1"])
        documents.append(f"- {text}\n".encode())
    return disagreement(documents)


def tree(r, depth=0):
    kind = r.random()
    if depth < 4 and kind < 0.2:
        return [tree(r, depth + 1) for _ in range(r.randint(0, 4))]
    if depth < 4 and kind < 0.5:
        return {text(r) or "k": tree(r, depth + 1) for _ in range(r.randint(0, 4))}
    return r.choice([None, True, False, 0, 1, -1, 2**63 - 1, -2**63, 1.0, 2.5, 1e-05, 1e16, 1e300, math.inf, -math.inf, math.nan, 0.1, r.randint(-10**6, 10**6),
                     r.random(), text(r), text(r), text(r)])


def text(r):
    return r.choice(["", "a", "yes", "no", "1", "1.5", "1e5", "~", "null", "2024-01-01", "0x1f", "it's", 'say "x"', "two\nlines", "  spaces ", "a: b", "- x", "#c", "é", "😀", "\t",
                     "tab\tin", "x\n\n y", "\\", "<<", "=", "*a", "&a", "!t", "%d", "@", "`", "{", "]", ",", "?", "-", "---", "...", "smollm2-135m", "\u00a0", "\u2028", "\x7f", "\x85"]) * r.randint(1, 2)


def dumped(r):
    value = [tree(r) for _ in range(r.randint(1, 4))]
    if r.random() < 0.3:
        value.append(value[0])  # an anchor and an alias, where it is a list or map
    return yaml.safe_dump(value, default_flow_style=r.choice([True, False, None]), default_style=r.choice([None, None, None, "'", '"', "|", ">"]), indent=r.choice([2, 3, 4]),
                          width=r.choice([10, 80]), allow_unicode=r.choice([True, False]), explicit_start=r.random() < 0.2, sort_keys=False,
                          canonical=r.random() < 0.05, line_break=r.choice([None, "\r\n"])).encode()


def trees():
    r = random.Random(2)
    return disagreement([dumped(r) for _ in range(3000)])


def damaged():
    r = random.Random(3)
    good = [c.encode() for c in CASES.values() if len(c) < 1000] + [dumped(r) for _ in range(300)]
    documents = []
    for _ in range(6000):
        data = bytearray(r.choice(good))
        for _ in range(r.randint(1, 3)):
            i = r.randrange(len(data) + 1)
            if data and r.random() < 0.4:
                del data[i - 1]
            else:
                data[i:i] = r.choice([b":", b": ", b"- ", b"[", b"]", b"{", b"}", b",", b"\n", b" ", b"  ", b"'", b'"', b"#", b"&a ", b"*a", b"!!str ", b"?", b"|", b">", b"\t", b"0", b"1", b"e", b".", b"_",
                                      b"<<: ", b"---\n", b"%", b"@", b"\xff", b"\xc3\xa9", b"\x00"])
        documents.append(bytes(data))
    return disagreement(documents)


if not os.path.exists(OURS):
    tap.skip("yaml", f"{OURS} is not built")
    tap.done()
for name, text_of_it in CASES.items():
    tap.case(f"{name}: as PyYAML", case, text_of_it)
tap.case("12000 plain scalars mean what they mean to PyYAML", scalars)
tap.case("3000 trees as PyYAML writes them", trees)
tap.case("6000 damaged documents: no verdict differs", damaged)
tap.done()
