#!/bin/sh
# prose.sh [SEED] - the project's prose, for a reader and for a rule.
# Prints 100 comments and 50 sentences of the pages, drawn by SEED (default 1): a reader marks what needs a second reading.
# Then checks all of them. It fails on a sentence over 25 words, on a line over 100 columns in a header or a page, and on
# more than 10 comments that begin with Of, What, Where, Whether or By. It fails, too, on a function of a public header
# (components/headers.txt) that no comment above it describes in the form "name - text".
cd "$(dirname "$0")/.." || exit 1
exec python3 - "${1:-1}" <<'END'
import glob, random, re, sys

MOST_WORDS, MOST_COLUMNS, MOST_RIDDLES = 25, 100, 10
pages = ["README.md", "defaults/README.md", *sorted(glob.glob("docs/*.md"))]
sources = sorted(f for top in ("components", "recipes", "tools", "datasets")
                 for f in glob.glob(top + "/**/*.[ch]", recursive=True) if not f.endswith("unicode_tables.h"))
failures = []


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def comments(path):
    """(line, text) of each comment; // comments on neighbouring lines are one."""
    text = text_of(path)
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|(?://[^\n]*\n\s*)+', re.S)
    for m in pattern.finditer(text):
        if m.group().startswith(("/*", "//")):
            yield text.count("\n", 0, m.start()) + 1, m.group()


def paragraphs(comment):
    """A comment's paragraphs. Indented lines are examples; "name - " begins a paragraph."""
    comment = re.sub(r"^/\*+|\*/$", "", comment.strip())
    paragraph = []
    for line in comment.split("\n"):
        line = re.sub(r"^\s*(\*|//) ?", "", line)
        begins = re.match(r"[\w.*]+(\([^)]*\))?(, [\w.*]+)* - |- |\d+\. |Source: ", line)
        if not line.strip() or line.startswith("   ") or re.match(r"-{2,}|={2,}", line.strip()) or begins:
            if paragraph:
                yield " ".join(paragraph)
            paragraph = []
        if line.strip() and not line.startswith("   "):
            paragraph.append(line.strip())
    if paragraph:
        yield " ".join(paragraph)


def page_paragraphs(path):
    """A page's paragraphs, list items and table cells, without code."""
    paragraph, code = [], False
    for line in text_of(path).split("\n") + [""]:
        fence = line.startswith("```")
        code = code != fence
        plain = not (fence or code or line.startswith("    ") or line.startswith("|") or line.startswith("#"))
        if paragraph and (not plain or not line.strip() or re.match(r"\s*(- |\d+\. )", line)):
            yield " ".join(paragraph)
            paragraph = []
        if line.startswith("|") and not re.match(r"^[|\s:-]+$", line):
            yield from (cell.strip() for cell in re.sub(r"`[^`]*`", "code", line).split("|") if cell.strip())
        elif plain and line.strip():
            paragraph.append(re.sub(r"^(- |\d+\. )", "", line.strip()))


def sentences(paragraph):
    paragraph = re.sub(r"`[^`]*`", "Code", paragraph)
    paragraph = re.sub(r"\]\([^)]*\)", "]", paragraph)
    paragraph = re.sub(r"\b(e\.g|i\.e|et al|vs|cf)\.", r"\1", paragraph)
    return [s for s in re.split(r"(?<=[.!?])[)\"*]*\s+", paragraph) if s.strip()]


def words(sentence):
    return sum(1 for w in sentence.split() if re.search(r"\w", w))


def check(where, paragraph):
    for s in sentences(paragraph):
        if words(s) > MOST_WORDS:
            failures.append(f"{where}: {words(s)} words: {s}")


all_comments, riddles, all_sentences = [], [], []
for path in sources:
    for line, comment in comments(path):
        all_comments.append((f"{path}:{line}", comment))
        if re.match(r"(/\*+|//)\s*(Of|What|Where|Whether|By)\b", comment):
            riddles.append(f"{path}:{line}")
        for p in paragraphs(comment):
            check(f"{path}:{line}", p)
for path in pages:
    for p in page_paragraphs(path):
        all_sentences.extend((path, s) for s in sentences(p) if words(s) > 3)
        check(path, p)
for path in [*pages, *(f for f in sources if f.endswith(".h"))]:
    for i, line in enumerate(text_of(path).split("\n"), 1):
        if len(line) > MOST_COLUMNS:
            failures.append(f"{path}:{i}: {len(line)} columns")
for header in text_of("components/headers.txt").split("\n"):
    if not header or header.startswith("#"):
        continue
    text = text_of("components/" + header)
    code = re.sub(r"/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S | re.M)
    for m in re.finditer(r"^\w[^\n=;()]*?\b(tune_\w+)\s*\(", code, re.M):
        above = "\n".join(c for line, c in comments("components/" + header) if line <= code.count("\n", 0, m.start(1)) + 1)
        lists = re.findall(r"(?:/\*|\*|//|\A)\s*([\w,\s*]+?)(?:\([^)]*\))? - ", above)
        names = {n for names in lists for n in re.split(r"[\s,*]+", names)}
        if not any(n and (n == m.group(1) or n.startswith("_") and m.group(1).endswith(n)) for n in names):
            failures.append(f"components/{header}:{code.count(chr(10), 0, m.start(1)) + 1}: {m.group(1)} is not described above")
if len(riddles) > MOST_RIDDLES:
    failures.append(f"{len(riddles)} comments begin with Of, What, Where, Whether or By: " + " ".join(riddles))

draw = random.Random(int(sys.argv[1]))
for i, (where, comment) in enumerate(draw.sample(all_comments, 100), 1):
    print(f"{i}. {where}\n{comment.strip()}\n")
for i, (where, sentence) in enumerate(draw.sample(all_sentences, 50), 101):
    print(f"{i}. {where}: {sentence}\n")
print(f"{len(all_comments)} comments, {len(all_sentences)} sentences of pages, {len(failures)} failures")
for f in failures:
    print("not plain: " + f)
sys.exit(bool(failures))
END
