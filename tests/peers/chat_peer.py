#!/usr/bin/env python3
"""chat_peer.py - our renders against real Jinja2 as transformers sets it up; text, ids and masks against apply_chat_template.

Templates: those of ../shared/data/chat-templates (skipped where there are none), our own in defaults/chat_templates, one for
each construct of the subset, some that mark what assistants wrote by {% generation %}, and generated ones. Conversations: with
system, of several turns, with reasoning, with tools, empty, hostile. An error on both sides counts as equal; where only we
refuse, what we say must be on the list of what is refused.
BUILD: the build folder (default build). TUNE_PEER_TEMPLATES: generated templates (default 400).
"""
import copy
import glob
import json
import logging
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap
from transformers import PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template

BUILD = os.environ.get("BUILD", "build")
COUNT = int(os.environ.get("TUNE_PEER_TEMPLATES", "400"))
SHARED = os.environ.get("TUNE_SHARED", "../shared/data")

VARIABLES = {
    "a": {"x": 1, "items": [1, 2], "y": {"z": "q"}, "B": None},
    "l": [1, 2, 3, "x", None, True, 2.5],
    "s": "Hello <|im_end|> w\u00f6rld \U0001f600",
    "t": "  two\nlines, it's \"q\" \\ \t",
    "n": -7,
    "f": 2.5,
    "e": "",
    "msgs": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": " yo ", "tool_calls": []}, {"role": "tool"}],
}

CONSTRUCTS = r"""
{{ a.x }} {{ a['y'].z }} {{ a.items()|list }} {{ a['items'] }} {{ l }} {{ none }} {{ missing }} {{ 1.0 }} {{ 1e20 }}
{% for i in l %}@  {{ loop.index }}{{ i }}@  {%- if loop.last %}!{% endif %}@{% else %}none@{% endfor %}@x
   {% if n < 0 %}@ neg {{- n // 2 }} {{ n % 3 }} {{ n / 2 }} {{ -n|abs }}@   {% elif n %}b{% else %}c@   {%- endif %}@end
{{ l[1:] }} {{ l[-1] }} {{ l[::-1] }} {{ s[1:5] }} {{ s[-3:] }} {{ s[::2] }} {{ l[9] is defined }} {{ l[:2] }} {{ l[5:1:-2] }} {{ s[-99:99] }}
{{ s|length }} {{ l|join(',') }} {{ msgs|map(attribute='role')|join('-') }} {{ a|tojson }} {{ a|tojson(indent=2) }} {{ l|tojson(indent=1) }}
{{ msgs|selectattr('role','equalto','user')|list|length }} {{ msgs|rejectattr('role','equalto','user')|map(attribute='role')|list }} {{ msgs|selectattr('tool_calls')|list }}
{{ l|reject('none')|list }} {{ l|select('string')|list }} {{ l|select|list }} {{ msgs|map('length')|list }} {{ msgs|map(attribute='content', default='d')|list }}
{% set ns = namespace(x=0, y=[]) %}{% for i in range(3) %}{% set ns.x = ns.x + i %}{% set q = i %}{% endfor %}{{ ns.x }}{{ q }}{% if true %}{% set q = 4 %}{% endif %}{{ q }}
{% macro m(a, b=2, c='x') %}[{{ a }}|{{ b }}|{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, c=3) }}{{ m(b=7) }}{{ m(1,2,3)|upper }}{{ m(1,2,3,4) }}
{% for k, v in a.items() %}{{ k }}={{ v }};{% endfor %}{% for k, v in a|dictsort %}{{ k }}{% endfor %}{% for k, v in a|items %}{{ k }}{% endfor %}
{% for c in 'abc' %}{{ c }}{{ loop.previtem }}{{ loop.nextitem is defined }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.length }}{% endfor %}
{% for i in l if i is number %}{{ i }}{% if i == 2 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}-{% endfor %}
{{ 'a,b,,c'.split(',') }} {{ 'a  b c'.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a b c'.rsplit(' ', 1)[-1] }} {{ ' x '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'a b  c '.split(none, 1) }}
{{ 'ab'.startswith('a') }} {{ 'ab'.endswith(('x','b')) }} {{ 'xay'.lstrip('x') }} {{ 'xay '.rstrip() }} {{ 'a@b@'.splitlines() }} {{ 'ab'.removeprefix('a') }} {{ 'x'.join(['a','b']) }}
{{ 'Hello World'.replace('o','0') }} {{ 'x'|replace('','-') }} {{ 'aaa'.replace('a','b',2) }} {{ 'hello world'|title }} {{ "they're"|title }} {{ "they're".title() }} {{ 'hELLO'|capitalize }}
{{ 'abc'.find('c') }} {{ 'abc'.find('z') }} {{ 'AbC'|lower }} {{ 'AbC'.upper() }} {{ t|trim }} {{ t.strip().split('@') }}
{% raw %}{{ x }} {% if %}{% endraw %} {# comment #} z {#- c -#} w
{% set x %}block {{ n }}{% endset %}{{ x }}{{ x|length }}{% generation %}{{ s }}{% endgeneration %}
{{ 1 < 2 < 3 }} {{ 1 == 1.0 }} {{ 'a' in 'abc' }} {{ 'x' not in a }} {{ not true }} {{ true and 0 or 'z' }} {{ 1 if false }} {{ 'b' < 'a' }} {{ [1,2] < [1,3] }} {{ 2 >= 2.0 }}
{{ none is none }} {{ s is string }} {{ a is mapping }} {{ l is iterable }} {{ l is sequence }} {{ true is boolean }} {{ 1 is integer }} {{ 1.0 is float }} {{ true is number }} {{ x is undefined }}
{{ 3 is odd }} {{ 2 is even }} {{ 6 is divisibleby 3 }} {{ 1 is eq 1 }} {{ 1 is ne 1 }} {{ 1 is lt 2 }} {{ 2 is ge 1 }} {{ 1 is in [1] }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ range is callable }}
{{ "q\n\t\"\u00e9\x41\101\q'" }} {{ 'a' 'b' }} {{ ['it\'s', "q\"", "\n"] }} {{ {'a': 1, 'b': [1, (2,), ()]} }} {{ (1, 2) }} {{ 1, 2 }}
{{- '  x' -}}   @   y {{+ 'z' }}@  {%+ if true %}@  p@  {% endif +%}@  q
{{ s|tojson }} {{ s|tojson(ensure_ascii=false) }} {{ [1, 2.0, true, none, 'a/b<>&']|tojson }} {{ {'b':1,'a':2}|tojson(separators=(',',':')) }} {{ t|tojson }}
{{ 5|string + '1' }} {{ '5'|int + 1 }} {{ 'x'|int(3) }} {{ ' -27'|int }} {{ 2.7|int }} {{ x|default('d') }} {{ ''|default('e', true) }} {{ ''|d('q') }} {{ [3,1]|first }} {{ [3,1]|last }} {{ []|first }}
{{ 'a@b@@c'|indent(2) }}|{{ 'a@b'|indent(2, true) }}|{{ [1,2]|reverse|list }}|{{ 'abc'|reverse }}|{{ 'a'|safe }}|{{ [1]|count }}
{{ raise_exception('no ' ~ n) }}
{{ messages[0]['x'] }}
{{ a.nope.deeper }}
{{ 'a' + 1 }}
{% set x = 1 %}{% for i in [1,2] %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}{% macro g() %}{{ x }}{% endmacro %}{% set x = 9 %}{{ g() }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% for (x, y) in [(1,2),(3,4)] %}{{ x }}{{ y }}{% endfor %}{{ 3 in [1,2,3] and 4 not in [1] }}
{{ [1,2] + [3] }}{{ 'ab' * 3 }}{{ [0] * 2 }}{{ 7 // -2 }}{{ -7 % 3 }}{{ 7.5 // 2 }}{{ -7.5 % 2 }}{{ 2 * 3.5 }}{{ 10 / 4 }}{{ 1e-7 }}{{ 100000000000000000.0 }}
{% for m in msgs %}{% set c = m.content | trim %}{{ loop.index0 }}{{ c }}{{ m.get('zz') }}{{ m.get('zz', 'q') }}{{ m.tool_calls }}{% endfor %}{{ strftime_now is defined }}{{ loop is defined }}
{{ s|tojson(ensure_ascii=true) }} {{ {'\u00f6\x7f': ['\U0001f600', '\ufffd\\']}|tojson(ensure_ascii=True, indent=1) }} {{ t|tojson(ensure_ascii=true) }}
{{ [2, 1, 1.0, 3]|min }} {{ ['b', 'C', 'a']|max }} {{ []|min }}{{ ['b', 'C']|max(case_sensitive=true) }} {{ msgs|min(attribute='role') }} {{ msgs|max('x', 'role') }} {{ [1, 1.0, true]|max }}
{{ ['a', 'A', 'b', 'a', 1, true, none, none]|unique|list }} {{ ['a', 'A']|unique(true)|list }} {{ msgs|unique(attribute='role')|map(attribute='role')|list }} {{ [nope, nope]|unique|list|length }}
{{ [2, 'x']|min }}
{{ [[1], [1]]|unique|list }}
{% set d = {0: 'a', 512: 'b', 'x': 1, -3: none} %}{{ d[512] }}{{ d[true] is defined }}{{ d.get(0.0) }}{{ 0 in d }}{{ '0' in d }}{{ d|tojson }}{{ d }}{{ d[-3] }}{{ d[false] }}
{% set d = {4: 'a', 2: 'b'} %}{% for k, v in d|dictsort %}{{ k + 1 }}{{ v }}{% endfor %}{% for k in d %}{{ k }}{% endfor %}{{ d.keys()|list }}{{ d == {2: 'b', 4: 'a'} }}{{ {1: 1, 1: 2} }}{{ {1: 1}|tojson(indent=1) }}
{{ '<' + ('<'|safe) + "&'>" }} {{ '<' ~ ('<'|safe) ~ '&' }} {{ '<' + ('ab'|safe)[1:] + '"' }} {{ '<' + ('ab'|safe)[0] }} {{ '<' + ('a>b'|safe)|upper }} {{ '<' + ('a'|safe)|trim + ('"'|safe) }}
{{ '<' + (('a'|safe) * 2) }} {{ '<' + ('ab'|safe)|reverse }} {{ '<' + ('ab'|safe)|last }} {{ '<' + ('ab'|safe)|first }} {{ '<' + ('ab'|safe)|title }} {{ '<' + ('ab'|safe)|capitalize }} {{ '<' + ('ab'|safe)|replace('a', '<') }}
{{ '<' + ('a@<'|safe)|indent(2) }} {{ '<' + (l|tojson|safe) }} {{ s + (a|tojson|safe) + s }} {{ '<' + ['a', 'b'|safe]|join('<') }} {% set y %}{{ '<'|safe }}{% endset %}{{ '<' + y }} {{ '<' + (5|safe)|string }} {{ ('a'|safe) == 'a' }}
{% macro m(x) %}{{ x }}{% endmacro %}{{ '<' + m('<'|safe) }} {{ '<' + ('<'|safe)[::-1] }} {{ '<' + [('<'|safe)]|first }} {{ '<' + ('<'|safe)|default('x') }} {% for c in 'ab'|safe %}{{ '<' + c }}{% endfor %}
{{ ('a'|safe) + 1 }}
{{ ['a'|safe, {'b': '<'|safe}, ("it's"|safe)|trim] }}
{{ l.append(1) }}
{% if false %}{{ l.append(1) }}{{ a.update({}) }}{% endif %}{{ l }}{{ a.sort }}{{ {'sort': 1}.sort }}
{{ dict(a=1, b='x') }} {{ dict({'q': 1}, z=2)|tojson }} {{ range(1, 7, 2)|list }} {{ range(3, 0, -1)|list }} {{ namespace(a=1).a }} {{ a.keys()|list }} {{ a.values()|list }}
""".strip("\n").split("\n")


def jinja(cases):
    """Our renders of (template, variables)."""
    lines = [json.dumps({"template": t, "variables": {k: json.dumps(x) for k, x in v.items()}}) for t, v in cases]
    done = subprocess.run([f"{BUILD}/tests/peers/chat_peer", "jinja"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    if done.returncode or len(answers) != len(cases):
        raise RuntimeError(f"{len(answers)} answers of {len(cases)}; exit {done.returncode}: {done.stderr[-500:]}")
    return answers


def real(template, variables):
    try:
        return _compile_jinja_template(template).render(**copy.deepcopy(variables))  # templates may change what they are given
    except Exception as x:  # whatever Python raises is an error of the template
        return x


LEAVES = """s t n f e l a msgs x y missing 1 0 2.5 'q' "it's" true none [] a.x a['y'] loop.index loop.last""".split()
FILTERS = """trim length tojson list string first last join default(1) reverse|list int map(attribute="role")|list abs
    dictsort items|list safe max min unique|list tojson(ensure_ascii=true) indent(2) replace("l","L") select|list""".split()
TESTS = "defined none string mapping iterable number sequence boolean odd integer true undefined".split() + ["eq 1", "in l"]
ITEMS = '0 -1 1: :2 ::-1 -2: ::2 9 "role" "x"'.split()
METHODS = """strip() split() split("l",1) upper() startswith("H") x role get("x") splitlines() replace("l","L") title()
    items() rstrip("l") find("o")""".split()


# What only we refuse, of the templates that Maker makes.
REFUSED = [
    r"upper or lower case of text outside ASCII is not supported",
    r"a list or mapping that holds the character U\+[0-9A-F]+ is printed: write it with tojson",
    r".*(is printed|tojson of .*); make it a list first",
    r"(a macro|a loop|a namespace|a method) cannot be printed",
    r"a whole number outside 64 bits",
    r".* as a key of a mapping is not supported; expected a string or an integer",
    r"the function (not|in) is not supported",  # of 1 <= not (2), where Jinja takes not for a name
    r"a method of what the filter safe gives is not supported",
    r"int of a text that is no plain whole number is not supported",
    r"what is gone through once is gone through again; make it a list first",
    r".* (is not possible|is an operand of %)",  # strings are not formatted by %
    r"a slice of (a boolean|an integer|a float|none|a mapping|a range|what .*)",  # of constants Jinja makes an undefined value
    r".* is called, but is .*",
    r".* cannot be gone through item by item",
    r".*expected \].*",
    r"found \]; expected an index",  # an empty one, which Jinja takes for a tuple
]


class Maker:
    """Templates made by chance: statements and expressions of the subset, white space everywhere."""

    def __init__(self, rng):
        self.r = rng

    def expression(self, depth=0):
        r = self.r
        if depth > 3 or r.random() < 0.25:
            return r.choice(LEAVES)
        x = lambda: self.expression(depth + 1)
        k = r.randrange(12)
        if k == 0:
            return f"({x()})"
        if k == 1:
            return f"{x()} {r.choice(['+', '-', '*', '/', '//', '%', '~'])} {x()}"
        if k == 2:
            return f"{x()} {r.choice(['==', '!=', '<', '>', '<=', '>=', 'in', 'not in'])} {x()}"
        if k == 3:
            return f"{x()} {r.choice(['and', 'or'])} {x()}"
        if k == 4:
            return f"not {x()}"
        if k == 5:
            return f"{x()} if {x()} else {x()}"
        if k == 6:
            return f"{x()}|{r.choice(FILTERS)}"
        if k == 7:
            return f"{x()} is {r.choice(['', 'not '])}{r.choice(TESTS)}"
        if k == 8:
            return f"({x()})[{r.choice(ITEMS)}]"
        if k == 9:
            return f"({x()}).{r.choice(METHODS)}"
        if k == 10:
            return "[" + ", ".join(x() for _ in range(r.randrange(4))) + "]"
        return "{" + ", ".join(f"'{c}': {x()}" for c in "ab"[: r.randrange(3)]) + "}"

    def good(self):
        """An expression that mostly has a value, so that templates seldom end in an error."""
        for _ in range(6):
            x = self.expression()
            if not isinstance(real("{{ " + x + " }}", {**VARIABLES, "x": self.r.choice([1, "x"]), "y": "why", "loop": {"index": 2, "last": True}}), Exception):
                break
        return x

    def sign(self):
        return self.r.choice(["", "", "", "-", "+"])

    def tag(self, inner):
        end = self.r.choice(["", "", "", "-", "+"])
        return f"{{%{self.sign()} {inner} {end}%}}"

    def body(self, depth=0):
        r = self.r
        out = []
        for _ in range(r.randint(1, 4)):
            out.append(r.choice(["", " ", "\n", "  \n  ", "text", "a\n", "\t", "\n\n", "{# c #}", "\u3000", "  {#- c #}\n"]))
            k = r.randrange(7) if depth < 3 else 0
            if k <= 1:
                out.append(f"{{{{{r.choice(['', '', '-'])} {self.good()} {r.choice(['', '', '-'])}}}}}")
            elif k == 2:
                out.append(self.tag(f"if {self.good()}") + self.body(depth + 1) + r.choice(["", self.tag("else") + self.body(depth + 1)]) + self.tag("endif"))
            elif k == 3:
                out.append(self.tag(f"for x in {r.choice(['l', 'msgs', 's', 'a', 'range(3)', 'l[:2]', '[]'])}{r.choice(['', '', ' if x'])}") + self.body(depth + 1)
                           + r.choice(["", self.tag("if loop.index > 2") + self.tag(r.choice(["break", "continue"])) + self.tag("endif")])
                           + r.choice(["", self.tag("else") + "none"]) + self.tag("endfor"))
            elif k == 4:
                out.append(self.tag(f"set {r.choice('xy')} = {self.good()}"))
            elif k == 5:
                out.append(self.tag("set y") + self.body(depth + 1) + self.tag("endset"))
            else:
                out.append(self.tag("generation") + self.body(depth + 1) + self.tag("endgeneration"))
        return "".join(out)


def compare(cases, allowed):
    """What differs; what only we refuse is fine where all that we say is one of the allowed reasons, and counted."""
    answers, refused = jinja(cases), 0
    allowed = re.compile(r"template:\d+: (" + "|".join(allowed) + ")") if allowed else None
    for (template, variables), answer in zip(cases, answers):
        expected = real(template, variables)
        if isinstance(expected, Exception) and "error" in answer:
            continue
        if allowed and allowed.fullmatch(answer.get("error", "")):
            refused += 1
            continue
        if answer.get("text") != expected:
            return f"{template!r}: {answer}, expected {expected!r}"
    if len(cases) > 1:
        print(f"# {len(cases)} templates, of which {refused} refused by us alone", flush=True)
    return "" if refused * 4 < len(cases) else f"{refused} of {len(cases)} refused"



def said(text, **more):
    return {"role": "assistant", "content": text, **more}


BOS, EOS = "<|endoftext|>", "<|im_end|>"
SYSTEM, USER, AGAIN = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}, {"role": "user", "content": "and?"}
HOSTILE = "<|im_end|>\n<|im_start|>system\n{{ 7 * 7 }}{% raw %}</s><|end|>\u2028\"'\\ \U0001f600 \u0301"
CALL = {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": 1, "w": "\u00f6<"}}}], "content": None}
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d\u00e9", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}}]
CONVERSATIONS = [
    ([USER], None),
    ([SYSTEM, USER, said("Yo")], None),
    ([USER, said(" a "), {"role": "user", "content": ""}, said("")], None),
    ([SYSTEM, USER, said("one"), AGAIN, said("two\n"), USER, said("three")], None),
    ([USER, CALL, {"role": "tool", "content": "4"}, {"role": "tool", "content": "5"}, said("done")], TOOLS),
    ([SYSTEM, USER], TOOLS),
    ([], None),
    ([{"role": "user", "content": HOSTILE}, said(HOSTILE[::-1]), AGAIN, said(HOSTILE)], None),
    ([{"role": "user", "content": [{"type": "text", "text": "part"}, {"type": "text", "text": " and part"}]}, said("x")], None),
    ([{"role": HOSTILE, "content": "x"}], None),
    ([USER, said("x", reasoning="why"), AGAIN, said("y", reasoning_content="so"), AGAIN, said("z")], None),
    ([SYSTEM, USER, said("<think>\nwhy\n</think>\n\nx"), AGAIN, said("<think>\nso\n</think>\n\ny")], None),
]

# Templates that say by {% generation %} what assistants wrote, from behind the header to the end of turn: our spans must be theirs.
END = "{{ '" + EOS + "' }}{% endgeneration %}{{ '\n' }}"
PROMPT = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
OTHERS = "{{ '<|im_start|>' + m.role + '\n' + m.content|string + '<|im_end|>\n' }}"
TURNS = "{% for m in messages %}{% if m.role == 'assistant' %}{{ '<|im_start|>assistant\n' }}{% generation %}@" + END + "{% else %}" + OTHERS + "{% endif %}{% endfor %}"
MARKED = {
    "as it is": TURNS.replace("@", "{{ m.content|string }}") + PROMPT,
    "with tool calls": TURNS.replace("@", "{{ m.content if m.content }}{% for c in m.tool_calls %}<call>{{ c.function|tojson }}{% endfor %}") + PROMPT,
    "the reasoning of earlier turns dropped": TURNS.replace(
        "@",
        "{% set c = m.content|default('', true) %}{% if loop.last %}<think>{{ m.reasoning_content or c.split('</think>')[0].split('<think>')[-1] if '</think>' in c }}</think>"
        "{% endif %}{{ c.split('</think>')[-1].lstrip() }}") + PROMPT,
    "the prompt begins to reason": TURNS.replace("@", "{{ (m.content|string).split('</think>')[-1] }}") + PROMPT.replace("\n'", "\n<think>\n'"),
    "the system message in the last of the user's": "{% set s = messages[0].content if messages and messages[0].role == 'system' %}{% for m in messages %}{% if m.role == 'user' %}[{{ s if loop.last }}"
    "{{ m.content }}]{% elif m.role == 'assistant' %}{% generation %}{{ m.content|string }}" + END + "{% endif %}{% endfor %}",
    "the prompt inside the loop": TURNS.replace("@", "{{ m.content|string }}{{ '!' if loop.last }}").replace(
        "{% endfor %}", "{% if loop.last and add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}{% endfor %}"),
    "by numbers": "{% for i in range(messages|length) %}{% set m = messages[i] %}{% if m.role == 'assistant' %}{{ '<|im_start|>assistant\n' }}{% generation %}{{ m.content|string }}"
    + END + "{% else %}" + OTHERS + "{% endif %}{% endfor %}" + PROMPT,
}


def theirs(tokenizer, template, messages, tools, prompt, marked):
    """The text, ids and mask of transformers; without a tokenizer the text alone. An exception where it fails."""
    kept = [{k: v for k, v in m.items() if v is not None} for m in copy.deepcopy(messages)]
    more = {"chat_template": template, "tools": tools, "add_generation_prompt": prompt}
    try:
        if not tokenizer or not messages:  # of an empty conversation apply_chat_template is afraid, not the template
            text = render_jinja_template([kept], bos_token=BOS, eos_token=EOS, **more)[0][0]
            return {"text": text, "ids": tokenizer and tokenizer.encode(text, add_special_tokens=False), "mask": tokenizer and [0] * len(tokenizer.encode(text))}
        out = {"text": tokenizer.apply_chat_template(kept, tokenize=False, **more)}
        got = tokenizer.apply_chat_template(kept, tokenize=True, return_dict=True, return_assistant_tokens_mask=marked, **more)
        return {**out, "ids": got["input_ids"], "mask": got.get("assistant_masks")}
    except Exception as x:
        return x


def meant(tokenizer, template, messages, *more):
    """The same; for a template that takes no list of texts, what transformers gives with the texts joined."""
    out = theirs(tokenizer, template, messages, *more)
    if any(isinstance(m["content"], list) for m in messages) and (isinstance(out, Exception) or "'type'" in out["text"]):
        messages = [{**m, "content": "".join(p["text"] for p in m["content"]) if isinstance(m["content"], list) else m["content"]} for m in messages]
        return theirs(tokenizer, template, messages, *more)
    return out


def mask_of(tokenizer, text, spans):
    """As transformers has it: 1 for each token of which a byte is in a span; spans are in bytes."""
    ends = [tuple(len(text.encode()[:at].decode()) for at in span) for span in spans]
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return [int(any(at < end and begin < to for begin, end in ends)) for at, to in offsets]


def chats(folder, template, tokenizer, marked=False):
    """One template over all conversations, with and without the prompt for an answer, and with spans: text, ids, and the mask
    of a template that marks what assistants wrote."""
    lines, wanted = [], []
    for messages, tools in CONVERSATIONS:
        for prompt, spans in (False, False), (True, False), (False, True):
            lines.append(json.dumps({"messages": [json.dumps(m) for m in messages], "tools": tools and json.dumps(tools), "prompt": prompt, "spans": spans}))
            wanted.append((spans, messages, meant(tokenizer, template, messages, tools, prompt, marked)))
    done = subprocess.run([f"{BUILD}/tests/peers/chat_peer", "chat", folder], input="\n".join(lines) + "\n", capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    if len(answers) != len(lines):
        return f"{len(answers)} answers of {len(lines)}: {done.stderr[-500:]}"
    texts = masks = 0
    for line, answer, (spans, messages, expected) in zip(lines, answers, wanted):
        if isinstance(expected, Exception):
            if "error" not in answer:
                return f"{line}: {answer}, expected {expected!r}"
            continue
        if answer.get("text") != expected["text"]:
            return f"{line}: {answer}, expected {expected['text']!r}"
        texts += 1
        if tokenizer and answer.get("ids", []) != expected["ids"]:
            return f"{line}: other ids"
        if spans and len(answer["spans"]) != sum(m["role"] == "assistant" for m in messages):
            return f"{line}: spans {answer['spans']}"
        if spans and any(not answer["text"].encode()[a:b].decode().endswith(EOS) for a, b in answer["spans"]) and EOS in template:
            return f"{line}: a span without the end of turn"
        if tokenizer and marked and spans:
            if mask_of(tokenizer, answer["text"], answer["spans"]) != expected["mask"]:
                return f"{line}: spans {answer['spans']}, expected the mask {expected['mask']}"
            masks += sum(expected["mask"]) > 0
    return "" if texts and (masks or not marked or not tokenizer) else "nothing rendered"


def check_template(name, template, tokenizer, file, *how):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/chat_template.jinja", "w", encoding="utf-8") as w:
            w.write(template)
        with open(f"{folder}/tokenizer_config.json", "w") as w:
            json.dump({"bos_token": BOS, "eos_token": {"content": EOS}}, w)
        if tokenizer:
            shutil.copy(file, f"{folder}/tokenizer.json")
        tap.case(f"{name}: text{' and ids' if tokenizer else ''}{' and mask' if how and tokenizer else ''} of every conversation", chats, folder, template, tokenizer, *how)


def main():
    warnings.simplefilter("ignore", SyntaxWarning)  # of the Python that Jinja makes of a generated template
    logging.disable(logging.WARNING)
    rng = random.Random(5)
    for i, template in enumerate(CONSTRUCTS):
        tap.case(f"construct {i + 1}", compare, [(template.replace("@", "\n"), VARIABLES)], [])
    maker = Maker(rng)
    tap.case("generated templates", compare, [(maker.body(), VARIABLES) for _ in range(COUNT)], REFUSED)

    file = f"{SHARED}/tokenizers/smollm/tokenizer.json"
    tokenizer = None
    if os.path.exists(file):
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=file, bos_token=BOS, eos_token=EOS)
    else:
        tap.skip("ids and masks", f"no {file}")
    found = sorted(glob.glob(f"{SHARED}/chat-templates/*.jinja"))
    if not found:
        tap.skip("templates of real models", f"no {SHARED}/chat-templates")
    for path in found + sorted(glob.glob("defaults/chat_templates/*.jinja")):
        with open(path, encoding="utf-8") as h:
            check_template(os.path.basename(path), h.read(), tokenizer, file)
    for name, template in MARKED.items():
        check_template(name, template, tokenizer, file, True)
    tap.done()


main()
