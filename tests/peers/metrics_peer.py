"""Our metrics against rouge-score's, sacreBLEU's and SQuAD's rules, on made-up rows: words and marks of several scripts, empty answers,
one to four references.

SQuAD's rules are written out below, as its evaluation script is no package.
"""
import collections
import os
import random
import re
import string
import subprocess

import tap

OURS = os.path.join(os.environ.get("BUILD", "build"), "tests/peers/metrics_peer")
NAMES = ["rouge_1", "rouge_2", "rouge_l", "rouge_lsum", "exact_match_raw", "exact_match_squad", "token_f1", "answer_characters", "bleu", "chrf"]
WORDS = ("the a an The AN cat dog Dog house of in 3 3.14 1,000 10-20 state-of-the-art don't e.g. U.S.A. yes YES no_way <skipped> &quot;hi&quot; &amp; &lt;b&gt; "
         "naïve ÉCOLE école Straße ΣΟΦΟΣ ΟΔΥΣΣΕΥΣ σοφία İstanbul ISTANBUL \u212aelvin 東京 こんにちは 안녕 привет ПРИВЕТ مرحبا नमस्ते a\u0301 🙂 e\u0301 ½ Ⅷ x² "
         "(see) [1] {2} a/b a|b $5 50% #1 @me ^ ~ ` \" ' '' - -- — … « » ¿que? ... ,, .5 5. 5, -5 5- a.b a,b . , ; : ! ?").split()
SPACES = [" "] * 12 + ["\n", "\n", "  ", "\t", "\u00a0", "\u3000", "-\n", "\r\n", "\u2028", "\x1c", "\x85", "\u200b", ""]


def text(rng):
    kind = rng.random()
    if kind < 0.06:
        return rng.choice(["", " ", "\n", "...", "the", "\u00a0", "a", "-", "\n\n"])
    words = rng.choices(WORDS, k=rng.choice([1, 2, 3, 4, 8, 20, 60]))
    return "".join(w + rng.choice(SPACES) for w in words)


def changed(rng, given):
    """A text that has much of another one."""
    parts = re.split(r"(\s+)", given)
    out = [p for p in parts if rng.random() < 0.85]
    if rng.random() < 0.5:
        rng.shuffle(out)
    return "".join(out) + (rng.choice(WORDS) if rng.random() < 0.5 else "")


def rows(seed, count):
    rng = random.Random(seed)
    out = []
    for _ in range(count):
        references = [text(rng)]
        while len(references) < 4 and rng.random() < 0.4:
            references.append(text(rng) if rng.random() < 0.5 else changed(rng, references[0]))
        pick = rng.random()
        answer = rng.choice(references) if pick < 0.1 else changed(rng, rng.choice(references)) if pick < 0.8 else text(rng)
        out.append((answer, references))
    return out


def ours(given):
    data = b""
    for answer, references in given:
        texts = [t if isinstance(t, bytes) else t.encode() for t in [answer, *references]]
        data += b"%d\n" % len(texts) + b"".join(b"%d\n%b" % (len(t), t) for t in texts)
    done = subprocess.run([OURS, *NAMES], input=data, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    lines = [dict(zip(NAMES, map(float, line.split()))) for line in done.stdout.decode().splitlines()]
    assert len(lines) == len(given) + 1
    return lines[:-1], lines[-1]


def compare(given, name, theirs, tolerance=1e-12):
    got, _ = ours(given)
    values = [theirs(answer, references) for answer, references in given]
    for (answer, references), a, b in zip(given, got, values):
        if not abs(a[name] - b) <= tolerance:
            return f"{a[name]} and {b} for {answer!r} and {references!r}"
    if not 0.02 < sum(0 < v for v in values) / len(values) or min(values) == max(values):
        return "the rows do not differ in it"


def squad(s):
    s = "".join(c for c in s.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", s).split())


def squad_f1(answer, reference):
    a, b = squad(answer).split(), squad(reference).split()
    if not a or not b:
        return float(a == b)
    same = sum((collections.Counter(a) & collections.Counter(b)).values())
    p, r = same / len(a), same / len(b)
    return 2 * p * r / (p + r) if same else 0.0


def best(one):
    return lambda answer, references: max(float(one(answer, r)) for r in references)


def rouge(kind):
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer([kind])
    return lambda answer, references: scorer.score_multi(references, answer)[kind].fmeasure


def sentence(metric):
    return lambda answer, references: metric.sentence_score(answer, references).score


def corpus(seed, name, metric):
    for count in (1, 7, 600):
        given = rows(seed, count)
        _, got = ours(given)
        most = max(len(references) for _, references in given)
        streams = [[references[i] if i < len(references) else None for _, references in given] for i in range(most)]
        want = metric.corpus_score([answer for answer, _ in given], streams).score
        if not abs(got[name] - want) <= 1e-9:
            return f"{count} rows: {got[name]} and {want}"
        if count == 600 and not want > 0:
            return f"{count} rows: {want}"


def broken(given):
    """Bytes that are no UTF-8 anywhere: any value, no crash."""
    rng = random.Random(5)
    bad = [(bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 2, 5, 40]))), [bytes(rng.randrange(256) for _ in range(20))]) for _ in given]
    for line in ours(bad)[0]:
        if not all(0 <= line[name] <= 100.0000001 for name in NAMES):
            return str(line)


if not os.path.exists(OURS):
    tap.skip("metrics", f"{OURS} is not built")
    tap.done()
GIVEN = rows(1, 800)
tap.case("exact_match_raw", compare, GIVEN, "exact_match_raw", best(lambda a, b: a == b))
tap.case("exact_match_squad is SQuAD's", compare, GIVEN, "exact_match_squad", best(lambda a, b: squad(a) == squad(b)))
tap.case("token_f1 is SQuAD's", compare, GIVEN, "token_f1", best(squad_f1))
tap.case("answer_characters are Python's", compare, GIVEN, "answer_characters", lambda answer, references: len(answer))
tap.case("rows that are no UTF-8", broken, GIVEN)
try:
    import rouge_score  # noqa: F401
except ImportError as why:
    tap.skip("rouge-score", str(why))
else:
    for name, kind in (("rouge_1", "rouge1"), ("rouge_2", "rouge2"), ("rouge_l", "rougeL"), ("rouge_lsum", "rougeLsum")):
        tap.case(f"{name} is rouge-score's", compare, GIVEN, name, rouge(kind))
try:
    from sacrebleu.metrics import BLEU, CHRF
except ImportError as why:
    tap.skip("sacreBLEU", str(why))
else:
    import logging

    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF())):
        tap.case(f"{name} of one row is sacreBLEU's", compare, GIVEN, name, sentence(metric))
        for seed in range(2, 8):
            tap.case(f"{name} of a corpus is sacreBLEU's, {seed}", corpus, seed, name, metric)
tap.done()
