"""Our expressions and our spelling of values against Python's own.

Random expressions over names of every type, and random rows of tokens for the grammar: the value must be Python's, to the type
and the last digit, and where Python raises, ours refuses. Python's evaluation here walks the syntax tree, because ours refuses
in the middle too: whole numbers beyond 64 bits, NaN, complex numbers, texts and lists that would have to be made. Where nothing
of that occurs, eval() of the whole must say the same. repr() of random floats and texts as well.
"""
import ast
import io
import json
import math
import operator
import os
import random
import re
import struct
import subprocess
import tempfile
import tokenize
import unicodedata
import warnings

import tap

warnings.simplefilter("ignore")
OURS = os.path.join(os.environ.get("BUILD", "build"), "tests/peers/expression_peer")
NAMES = {"batch_size": 4, "number_gpus": 0, "n": -7, "big": 2**63 - 1, "least": -2**63, "odd": 2**53 + 1, "x": 2.5, "y": -0.1, "huge": 1e300, "whole": 3.0, "minus": -0.0,
         "yes": True, "no": False, "none": None, "model_name": "smollm2-135m", "t": "", "e": "é", "l": [1, 2.0, "a", True], "empty": [], "ll": [[1, 2], [1, 3]], "an odd name": 5}
BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
COMPARE = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
           ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b}
FUNCTIONS = {"min": min, "max": max, "abs": abs, "len": len, "round": round, "log": math.log, "sqrt": math.sqrt}
WORDS = {"true": True, "false": False, "null": None}


class Refused(Exception):
    pass


def power(a, b):
    """Without computing numbers of a million digits."""
    if isinstance(a, int) and isinstance(b, int) and b > 64 and abs(a) > 1:
        raise Refused("beyond 64 bits")
    return a ** b


def kept(v):
    """A number we have; anything else an operator made is refused."""
    if isinstance(v, (str, list, tuple, complex)) or (isinstance(v, int) and not -2**63 <= v < 2**63) or v != v:
        raise Refused(f"{v!r}"[:80])
    return v


def check(tree):
    """What ours refuses before it evaluates anything."""
    functions = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    for n in ast.walk(tree):
        if isinstance(n, ast.Constant) and (not isinstance(n.value, (int, float, str, type(None))) or (isinstance(n.value, int) and n.value >= 2**63)):
            raise Refused("constant")
        if isinstance(n, ast.Name) and n.id.replace("_Q_", " ") not in (FUNCTIONS if id(n) in functions else {**NAMES, **WORDS}):
            raise Refused("name")
        if isinstance(n, ast.Call):
            if not isinstance(n.func, ast.Name) or n.keywords or not 1 <= len(n.args) <= {"len": 1, "abs": 1, "sqrt": 1, "log": 2, "round": 2}.get(n.func.id, 512):
                raise Refused("call")
        elif not isinstance(n, (ast.Constant, ast.Name, ast.List, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.IfExp, ast.Load, ast.boolop, ast.Not, ast.USub, ast.Pow, *BINARY, *COMPARE)):
            raise Refused(type(n).__name__)


def call(name, args):
    if name in ("min", "max") and len(args) == 1 and not isinstance(args[0], list):
        raise Refused("of a text")
    if name == "round" and len(args) > 1 and (args[1] is None or args[1] < 0):
        raise Refused("digits")
    v = FUNCTIONS[name](*args)
    return v if name in ("min", "max") else kept(v)


def value(node, made):
    """made: the lists that are not constant, which cannot be a result."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return WORDS[node.id] if node.id in WORDS else NAMES[node.id.replace("_Q_", " ")]
    if isinstance(node, ast.List):
        v = [value(x, made) for x in node.elts]
        if not constant(node):
            made.append(v)
        return v
    if isinstance(node, ast.BoolOp):
        for x in node.values:
            v = value(x, made)
            if bool(v) == isinstance(node.op, ast.Or):
                break
        return v
    if isinstance(node, ast.IfExp):
        return value(node.body if value(node.test, made) else node.orelse, made)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not value(node.operand, made)
    if isinstance(node, ast.UnaryOp):
        return kept(-value(node.operand, made))
    if isinstance(node, ast.BinOp):
        a, b = value(node.left, made), value(node.right, made)
        if isinstance(a, (str, list)) or isinstance(b, (str, list)):
            raise Refused("would make a text or a list, of any size")
        return kept(BINARY.get(type(node.op), power)(a, b))
    if isinstance(node, ast.Compare):
        a = value(node.left, made)
        for op, right in zip(node.ops, node.comparators):
            b = value(right, made)
            v = COMPARE[type(op)](a, b)
            if not v:
                break
            a = b
        return v
    return call(node.func.id, [value(a, made) for a in node.args])


def constant(node):
    if isinstance(node, ast.List):
        return all(map(constant, node.elts))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return constant(node.operand) and isinstance(node.operand, (ast.Constant, ast.UnaryOp)) and type(value(node.operand, [])) in (int, float)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in WORDS)


def python(text):
    """("value", repr) or ("refused", why)."""
    text = re.sub(r"`([^`]*)`", lambda m: m.group(1).replace(" ", "_Q_"), text)
    try:
        strings = [t.type for t in tokenize.generate_tokens(io.StringIO(f"({text})").readline)]
        if any(a == b == tokenize.STRING for a, b in zip(strings, strings[1:])):
            raise Refused("two texts in a row")
        tree = ast.parse(text.strip(), mode="eval").body
        check(tree)
        made = []
        v = value(tree, made)
        if any(v is m for m in made):
            raise Refused("a list that was made")
    except (Refused, TypeError, ValueError, ZeroDivisionError, OverflowError, SyntaxError, tokenize.TokenError) as e:
        return "refused", f"{type(e).__name__} {e}"
    again = eval(text.strip(), {"__builtins__": {}}, {**FUNCTIONS, **WORDS, **{k.replace(" ", "_Q_"): x for k, x in NAMES.items()}})
    assert repr(again) == repr(v), (text, again, v)
    return "value", repr(v)


def ours(expressions):
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
        json.dump({"names": NAMES, "expressions": expressions}, f)
        f.flush()
        run = subprocess.run([OURS, f.name], capture_output=True, text=True, encoding="utf-8", timeout=300)
    lines = run.stdout.split("\n")[:-1]
    assert run.returncode == 0 and len(lines) == len(expressions), (run.returncode, len(lines), run.stderr[-500:])
    return lines


def disagreement(expressions):
    counts = {"value": 0, "refused": 0}
    for text, line in zip(expressions, ours(expressions)):
        got, rest = line.split(" ", 1)
        want, what = python(text)
        counts[want] += 1
        if got != want or (got == "value" and rest != what):
            return f"{text!r}\n# we     {line}\n# Python {want} {what}"
    assert min(counts.values()) * 20 > len(expressions), counts  # either is tried


def atom(r):
    return r.choice([lambda: str(r.randint(0, 20)), lambda: r.choice(["0", "1", "9223372036854775807", "9223372036854775808", "9007199254740993", "4294967296", "1e999", "62", "63"]),
                     lambda: repr(round(r.uniform(0, 100), r.randint(0, 6))), lambda: r.choice(["0.5", "1e16", "1e-5", "1.", ".5", "2.675", "1e308", "0.0"]),
                     lambda: r.choice(["'a'", '"smol"', "''", "'it\\'s'", "'é'", "'\\n'", "True", "False", "None", "true", "false", "null"]),
                     lambda: r.choice([k for k in NAMES if " " not in k]), lambda: r.choice([k for k in NAMES if " " not in k]), lambda: "`an odd name`"])()


def expression(r, depth):
    if depth == 0 or r.random() < 0.15:
        return atom(r)

    def inner():
        return expression(r, depth - 1)

    kind = r.random()
    if kind < 0.35:
        return f"{inner()} {r.choice(['+', '-', '*', '/', '//', '%', '**'])} {inner()}"
    if kind < 0.5:
        text = inner()
        for _ in range(r.choice([1, 1, 2, 3])):
            text += f" {r.choice(['==', '!=', '<', '<=', '>', '>=', 'in', 'not in'])} {inner()}"
        return text
    if kind < 0.62:
        return f"{inner()} {r.choice(['and', 'or'])} {inner()}"
    if kind < 0.68:
        return f"({inner()})"
    if kind < 0.74:
        return f"{inner()} if {inner()} else {inner()}"
    if kind < 0.8:
        return f"{r.choice(['-', 'not ', '- -'])}{inner()}"
    if kind < 0.9:
        return f"[{', '.join(inner() for _ in range(r.randint(0, 3)))}]"
    return f"{r.choice(list(FUNCTIONS))}({', '.join(inner() for _ in range(r.choice([1, 1, 2, 3])))})"


def numbers(r):
    """An operation of two numbers near where something happens."""
    def one():
        return r.choice([lambda: str(r.randint(-10, 10)), lambda: str(r.choice([1, -1]) * (2**r.randint(0, 62) + r.randint(-2, 2))), lambda: repr(r.uniform(-3, 3)),
                         lambda: repr(r.choice([1, -1]) * 2.0**r.randint(-1074, 1023)), lambda: repr(float(r.randint(-100, 100)) / 4), lambda: "big", lambda: "least", lambda: "odd",
                         lambda: repr(float(2**r.randint(50, 64) + r.randint(-1, 1)))])()

    if r.random() < 0.1:
        return f"round({repr(r.choice([r.uniform(-1000, 1000), r.randint(-10**6, 10**6) / 8, r.randint(-10**5, 10**5) / 1000 + 0.005, r.uniform(-1, 1) * 10.0**r.randint(-20, 20)]))}" + \
            r.choice([")", f", {r.randint(0, 20)})"])
    return f"({one()}) {r.choice(['+', '-', '*', '/', '/', '//', '%', '//', '%', '**', '==', '<', '<=', '>', '!='])} ({one()})"


def random_expressions():
    r = random.Random(1)
    return disagreement([expression(r, r.randint(1, 4)) for _ in range(20000)])


def operations():
    r = random.Random(2)
    return disagreement([numbers(r) for _ in range(30000)])


def grammar():
    r = random.Random(3)
    tokens = ["1", "2.5", "x", "n", "'a'", "(", ")", "[", "]", ",", "+", "-", "*", "**", "//", "%", "/", "<", "==", "!=", ">=", "not", "and", "or", "in", "min", "len", "if", "else", "if", "else", "sqrt", "True", "None", "not in", "(", ")", "x", "1"]
    rows = []
    while len(rows) < 20000:
        row = " ".join(r.choices(tokens, k=r.randint(1, 7)))
        if not re.search(r"\) \(|min \)", row):  # (min)(1), which only Python calls
            rows.append(row)
    for text, line in zip(rows, ours(rows)):
        want, what = python(text)
        if line.split(" ", 1)[0] != want or (want == "value" and line[6:] != what):
            return f"{text!r}\n# we     {line}\n# Python {want} {what}"


def reprs():
    r = random.Random(4)
    floats = [struct.unpack("<d", r.randbytes(8))[0] for _ in range(200000)] + [r.uniform(0, 1) for _ in range(50000)] + [m * 10.0**e for e in range(-30, 30) for m in range(1, 200)]
    floats += [s * 2.0**e for e in range(-1074, 1024) for s in (1, -1)]
    points = [c for c in range(1, 0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
    texts = ["".join(chr(r.choice(points if r.random() < 0.3 else range(1, 0x250))) for _ in range(r.randint(0, 12))) for _ in range(50000)] + ["'", '"', "'\"", "\\", "\x7f\x80\xa0\xad"]
    items = [f for f in floats if math.isfinite(f)] + texts
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
        json.dump(items, f, ensure_ascii=False)
        f.flush()
        lines = subprocess.run([OURS, "--repr", f.name], capture_output=True, check=True, timeout=300).stdout.decode().split("\n")[:-1]
    assert len(lines) == len(items), (len(lines), len(items))
    for item, line in zip(items, lines):
        if repr(item) != line:
            return f"{item!r}, we {line}"


if not os.path.exists(OURS):
    tap.skip("expressions", f"{OURS} is not built")
    tap.done()
tap.case("20000 random expressions have Python's value", random_expressions)
tap.case("30000 operations of numbers at their edges", operations)
tap.case("20000 rows of tokens: what is an expression", grammar)
tap.case("repr() of 250000 floats and 50000 texts", reprs)
tap.done()
