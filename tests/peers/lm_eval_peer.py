"""Task files as build/evaluate reads them against lm-evaluation-harness 0.4.13: tasks, and groups with includes, with and without a
chat template. Values and standard errors are equal to the last printed digit; a perplexity to 1e-5 of it.

A tiny model learns rows made here. Rows whose two best choices are within 1e-3 of each other are left out: two programs may then differ.
"""
import json
import os
import random
import subprocess
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TRANSFORMERS_OFFLINE="1", DISABLE_MULTIPROC="1", LMEVAL_LOG_LEVEL="ERROR")
import tap

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
COLOURS = "red blue green yellow white black".split()
THINGS = "cat dog sun moon river stone bread glass iron leaf".split()
MARGIN = 1e-3


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(args)}: {done.stderr[-2000:]}"
    return done


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def write_rows(path, rows):
    write(path, "".join(json.dumps(r) + "\n" for r in rows))


# ---- rows ----
def facts(rng):
    """What the model learns, to say some of it rightly later."""
    for _ in range(60):
        a, b = rng.randint(1, 9), rng.randint(1, 9)
        yield f"Question: What is {a} and {b}?\nAnswer: {a} and {b} is {a + b}.\n#### {a + b}\n\n"
        thing, colour = rng.choice(THINGS), rng.choice(COLOURS)
        yield f"Question: Which colour has the {thing}?\nAnswer: {colour}\n\n"


def arc(rng, n):
    for i in range(n):
        texts = [" ".join(rng.choices(COLOURS + THINGS, k=rng.randint(1, 3))) for _ in range(rng.choice([3, 4, 4, 5]))]
        labels = list("ABCDE" if i % 3 else "12345")[:len(texts)]
        yield {"question": f"Which colour has the {rng.choice(THINGS)}?", "choices": {"text": texts, "label": labels}, "answerKey": rng.choice(labels)}


def piqa(rng, n):
    for _ in range(n):
        yield {"goal": f"Paint the {rng.choice(THINGS)} ", "sol1": f"use {rng.choice(COLOURS)} paint, naïvely", "sol2": f"use a {rng.choice(THINGS)}",
               "label": rng.randint(0, 1)}


def gsm(rng, n):
    for _ in range(n):
        a, b = rng.randint(1, 9), rng.randint(1, 9)
        wrong = rng.choice([0, 0, 0, 1])
        yield {"question": f"What is {a} and {b}?", "answer": f"{a} and {b} is {a + b}.\n#### {a + b + wrong}"}


def lambada(rng, n):
    for _ in range(n):
        a, b = rng.randint(1, 9), rng.randint(1, 9)
        yield {"text": f"Question: What is {a} and {b}?\nAnswer: {a} and {b} {rng.choice(['is', 'is', 'blue'])}"}


def boolq(rng, n):
    for _ in range(n):
        thing = rng.choice(THINGS)
        yield {"passage": f"The {thing} is {rng.choice(COLOURS)}.", "question": f"is the {thing} {rng.choice(COLOURS)}", "label": rng.random() < 0.5}


def trivia(rng, n):
    for _ in range(n):
        yield {"question": f"Which colour has the {rng.choice(THINGS)}", "answer": {"aliases": [c.title() + "!" for c in rng.sample(COLOURS, 3)]}}


def mmlu(rng, n):
    for _ in range(n):
        yield {"question": f" What is {rng.randint(1, 9)} and {rng.randint(1, 9)}? ", "choices": [str(rng.randint(2, 18)) for _ in range(4)],
               "answer": rng.randint(0, 3)}


def letters(rng, n):
    """The model answers with a sum or a colour: choices are found by their text, some by none of the ways."""
    for i in range(n):
        a, b = rng.randint(1, 9), rng.randint(1, 9)
        colours = rng.sample(COLOURS, 4)
        if i % 2:
            yield {"question": f"Which colour has the {rng.choice(THINGS)}?", "choices": [c.title() + "\u2014!" * (i % 3) for c in colours], "answer": rng.randint(0, 3)}
        else:
            yield {"question": f"What is {a} and {b}?", "choices": [f"{a} and", f" {a} and {b} is {a + b}.", colours[0], f"{a + b}"], "answer": rng.choice([1, 1, 0, 3])}


def texts(rng, n):
    """Some are longer than the model's context; white space is anywhere."""
    for i in range(n):
        words = [rng.choice(COLOURS + THINGS + ["What is", "\u00e4h,", "#### 7\n"]) for _ in range(rng.choice([1, 5, 30, 400]))]
        yield {"page": rng.choice(["", " ", "\n"]) + rng.choice([" ", "  ", "\u00a0"]).join(words) + rng.choice(["", "\n"])}


def swag(rng, n):
    for i in range(n):
        yield {"ctx_a": f"A {rng.choice(THINGS)} is here.", "ctx_b": rng.choice(["", "the CAT", "it"]), "activity_label": "Painting [title]",
               "endings": [f"paints [it] {rng.choice(COLOURS)} [title] the  {rng.choice(THINGS)}" for _ in range(4)], "label": str(rng.randint(0, 3))}


# ---- task files ----
def data(name, **splits):
    kinds = "\n".join(f"{kind}_split: {kind}" for kind in splits)
    files = "".join(f"\n    {kind}: {path}" for kind, path in splits.items())
    return f"dataset_path: json\ndataset_kwargs:\n  data_files:{files}\n{kinds}\n"


ACC = "metric_list:\n  - metric: acc\n    aggregation: mean\n    higher_is_better: true\n"
ACC_NORM = ACC + "  - metric: acc_norm\n    aggregation: mean\n    higher_is_better: true\n"
BODIES = {
    "t_arc": ("output_type: multiple_choice\ndoc_to_text: \"Question: {{question}}\\nAnswer:\"\ndoc_to_target: \"{{choices.label.index(answerKey)}}\"\n"
              "doc_to_choice: \"{{choices.text}}\"\n" + ACC_NORM + "metadata:\n  version: 1.0\n"),
    "t_piqa": ("output_type: multiple_choice\ndoc_to_text: \"Question: {{goal}}\\nAnswer: \"\ndoc_to_target: label\ndoc_to_choice: \"{{[sol1, sol2]}}\"\n"
               "num_fewshot: 2\n" + ACC_NORM + "  - metric: acc_bytes\n    aggregation: mean\n    higher_is_better: true\n"),
    "t_gsm": ("output_type: generate_until\nfewshot_split: training\ndoc_to_text: \"Question: {{question}}\\nAnswer:\"\ndoc_to_target: \"{{answer}}\"\n"
              "metric_list:\n  - metric: exact_match\n    aggregation: mean\n    higher_is_better: true\n    ignore_case: true\n"
              "    ignore_punctuation: false\n    regexes_to_ignore:\n      - \",\"\n      - \"\\\\$\"\n      - \"(?s).*#### \"\n      - \"\\\\.$\"\n"
              "generation_kwargs:\n  until:\n    - \"Question:\"\n    - \"</s>\"\n  do_sample: false\n  temperature: 0.0\n  max_gen_toks: 48\n"
              "repeats: 1\nnum_fewshot: 3\nfilter_list:\n  - name: strict-match\n    filter:\n      - function: regex\n"
              "        regex_pattern: \"#### (\\\\-?[0-9\\\\.\\\\,]+)\"\n      - function: take_first\n  - name: flexible-extract\n    filter:\n"
              "      - function: regex\n        group_select: -1\n        regex_pattern: \"(-?[$0-9.,]{2,})|(-?[0-9]+)\"\n      - function: take_first\n"
              "metadata:\n  version: 3.0\n"),
    "t_lambada": ("output_type: loglikelihood\ndoc_to_text: \"{{text.split(' ')[:-1]|join(' ')}}\"\ndoc_to_target: \"{{' '+text.split(' ')[-1]}}\"\n"
                  "metric_list:\n  - metric: perplexity\n    aggregation: perplexity\n    higher_is_better: false\n  - metric: acc\n"
                  "    aggregation: mean\n    higher_is_better: true\n"),
    "t_boolq": ("output_type: multiple_choice\ndescription: \"Read {{question[:2]}} and answer.\\n\\n\"\ndoc_to_text: \"{{passage}}\\nQuestion: {{question}}?\\nAnswer:\"\n"
                "doc_to_target: label\ndoc_to_choice: [\"no\", \"yes\"]\n" + ACC + "  - metric: f1\n"),
    "t_letters": ("output_type: generate_until\ndoc_to_text: \"Question: {{question}}\\nAnswer:\"\ndoc_to_target: \"{{['(A)', '(B)', '(C)', '(D)'][answer]}}\"\n"
                  "generation_kwargs:\n  until: [\"\\n\"]\n  max_gen_toks: 24\nrepeats: 3\nfilter_list:\n"
                  + "".join(f"  - name: {name}\n    filter:\n      - function: multi_choice_regex\n        regex_pattern: \"{pattern}\"\n{more}"
                            f"      - function: take_first_k\n        k: 2\n      - function: majority_vote\n      - function: take_first\n"
                            for name, pattern, more in (("letter", "(\\\\([A-D]\\\\))", ""), ("last", "answer is ([A-D])", "        group_select: -1\n"),
                                ("plain", "(is) (red)|#(x)", "        ignore_case: true\n        ignore_punctuation: true\n        regexes_to_ignore: [\"and \"]\n")))
                  + "metric_list:\n  - metric: exact_match\n    aggregation: mean\n    higher_is_better: true\n"),
    "t_texts": ("output_type: loglikelihood_rolling\ndoc_to_text: \"\"\ndoc_to_target: \"{{page}}\"\nmetric_list:\n  - metric: word_perplexity\n"
                "  - metric: byte_perplexity\n  - metric: bits_per_byte\n"),
    "t_trivia": ("output_type: generate_until\ndoc_to_text: \"Question: {{question}}?\\nAnswer:\"\ndoc_to_target: \"{{answer.aliases}}\"\n"
                 "generation_kwargs:\n  until:\n    - \"\\n\"\n    - \".\"\n  do_sample: false\n  max_gen_toks: 20\nfilter_list:\n"
                 "  - name: remove_whitespace\n    filter:\n      - function: remove_whitespace\n      - function: take_first\nmetric_list:\n"
                 "  - metric: exact_match\n    aggregation: mean\n    higher_is_better: true\n    ignore_case: true\n    ignore_punctuation: true\n"),
    "t_words": ("output_type: generate_until\ndoc_to_text: \"Question: {{question}}\\nAnswer:\"\ndoc_to_target: \"{{answer}}\"\ngeneration_kwargs:\n"
                "  until: \"####\"\n  max_gen_toks: 32\nmetric_list:\n  - metric: bleu\n    aggregation: bleu\n    higher_is_better: true\n"
                "  - metric: chrf\n    aggregation: chrf\n    higher_is_better: true\n"),
    "hellaswag": ("output_type: multiple_choice\nprocess_docs: !function utils.process_docs\ndoc_to_text: \"{{query}}\"\ndoc_to_target: \"{{label}}\"\n"
                  "doc_to_choice: \"choices\"\n" + ACC_NORM),
}
# Its own words for what the task's utils.py does.
SWAG = '''import re
def clean(text):
    return re.sub(r"\\[.*?\\]", "", text.strip().replace(" [title]", ". ")).replace("  ", " ")
def process_docs(dataset):
    def one(row):
        begin = row["ctx_a"] + " " + row["ctx_b"].capitalize()
        return {"query": clean(row["activity_label"] + ": " + begin), "choices": [clean(e) for e in row["endings"]], "gold": int(row["label"])}
    return dataset.map(one)
'''
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"


def make_files(rng):
    makers = {"t_arc": arc, "t_piqa": piqa, "t_gsm": gsm, "t_lambada": lambada, "t_boolq": boolq, "t_trivia": trivia, "t_words": gsm, "hellaswag": swag, "t_letters": letters, "t_texts": texts}
    for name, body in BODIES.items():
        kind = "validation" if name in ("t_piqa", "hellaswag") else "test"
        splits = {kind: f"data/{name}_{kind}.jsonl"}
        write_rows(splits[kind], makers[name](rng, 40))
        if "num_fewshot" in body:
            splits["training"] = f"data/{name}_training.jsonl"
            write_rows(splits["training"], makers[name](rng, 30))
        write(f"tasks/{name}.yaml", f"task: {name}\n" + data(name, **splits) + body)
    write("tasks/utils.py", SWAG)
    write("tasks/_base_yaml", "output_type: multiple_choice\nfewshot_split: dev\nfewshot_config:\n  sampler: first_n\nnum_fewshot: 2\n"
          "doc_to_text: \"{{question.strip()}}\\nA. {{choices[0]}}\\nB. {{choices[1]}}\\nC. {{choices[2]}}\\nD. {{choices[3]}}\\nAnswer:\"\n"
          "doc_to_choice: [\"A\", \"B\", \"C\", \"D\"]\ndoc_to_target: answer\n" + ACC + "metadata:\n  version: 1.0\n")
    for name, tag, count in (("m_one", "m_hard", 30), ("m_two", "m_hard", 17), ("m_three", "m_easy", 24)):
        write_rows(f"data/{name}_test.jsonl", mmlu(rng, count))
        write_rows(f"data/{name}_dev.jsonl", mmlu(rng, 4))
        write(f"tasks/{name}.yaml", f"include: _base_yaml\ntask: {name}\ntag: {tag}_tasks\ndescription: \"Questions about {name}.\\n\\n\"\n"
              f"dataset_path: json\ndataset_kwargs:\n  data_files:\n    test: data/{name}_test.jsonl\n    dev: data/{name}_dev.jsonl\ntest_split: test\n")
    for tag in ("m_hard", "m_easy"):
        write(f"tasks/_{tag}.yaml", f"group: {tag}\ngroup_alias: {tag[2:]}\ntask:\n  - {tag}_tasks\naggregate_metric_list:\n  - metric: acc\n    weight_by_size: True\n")
    write("tasks/_m_all.yaml", "group: m_all\ntask:\n  - m_hard\n  - m_easy\naggregate_metric_list:\n  - metric: acc\n    weight_by_size: True\nmetadata:\n  version: 2\n")
    write("tasks/_m_plain.yaml", "group: m_plain\ntask:\n  - m_two\n  - m_three\naggregate_metric_list:\n  - metric: acc\n    weight_by_size: False\n")


def make_model(rng):
    run(f"{BUILD}/init_model", "--layers", "2", "--hidden-size", "64", "--intermediate-size", "128", "--heads", "2", "--kv-heads", "1", "--vocab-size", "320",
        "--max-positions", "640", "--seed", "1", "random")
    write_rows("facts.jsonl", [{"text": t} for t in facts(rng)])
    run(f"{BUILD}/finetune_full", "--model", "random", "--dataset", "facts.jsonl", "--max-steps", "120", "--batch-size", "16", "--lr", "5e-3", "--max-length", "96",
        "--output", "run", "--seed", "1")
    settings = json.load(open("run/checkpoint-final/tokenizer_config.json"))
    settings["chat_template"] = TEMPLATE
    json.dump(settings, open("run/checkpoint-final/tokenizer_config.json", "w"))
    return "run/checkpoint-final"


def ours(model, files, out, *more):
    run(f"{BUILD}/evaluate", "--model", model, "--tasks", ",".join(files), "--tasks-data", ".", "--output", out, "--overwrite", *more)
    rows = [json.loads(line) for line in open(f"{out}/rows.jsonl")]
    return json.load(open(f"{out}/report.json")), rows


def close_rows(rows):
    """Rows of choices, by task, that two programs may judge differently."""
    bad = {}
    for r in rows:
        if len(r.get("choices", [])) < 2:
            continue
        for length in (lambda c: 1, len, lambda c: len(c.encode())):
            values = sorted((v / length(c) for c, v in zip(r["choices"], r["log_probs"])), reverse=True)
            if values[0] - values[1] < MARGIN:
                bad.setdefault(r["task"], set()).add(r["row"])
    return bad


def drop(bad):
    for task, rows in bad.items():
        for kind in ("test", "validation"):
            path = f"data/{task}_{kind}.jsonl"
            if os.path.exists(path):
                lines = open(path).readlines()
                write(path, "".join(line for i, line in enumerate(lines) if i not in rows))


def quick_f1():
    """Replace scikit-learn's F1, which lm-eval calls 100,000 times and takes a millisecond, by the formula."""
    import sklearn.metrics
    slow, checked = sklearn.metrics.f1_score, []

    def f1(golds, preds):
        hits = sum(g and p for g, p in zip(golds, preds))
        value = 2 * hits / (sum(golds) + sum(preds)) if hits else 0.0
        if len(checked) < 20:
            checked.append(value)
            assert abs(value - slow(golds, preds)) < 1e-15
        return value
    sklearn.metrics.f1_score = f1


def theirs(model, names, chat, batch=4):
    """lm-eval's results; a task that is in two groups is judged twice."""
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager
    lm = HFLM(pretrained=model, dtype="float32", device="cpu", batch_size=batch)
    all_ = {"results": {}, "samples": {}}
    for tasks in names:
        done = simple_evaluate(model=lm, tasks=tasks, apply_chat_template=chat, fewshot_as_multiturn=chat, log_samples=True,
                               task_manager=TaskManager(include_path="tasks", include_defaults=False))
        for key in all_:
            all_[key].update(done[key])
    return all_


def compare(report, done, names):
    wrong, seen = [], 0
    for name in names:
        for key, value in done["results"][name].items():
            metric, _, filter_ = key.partition(",")
            if not filter_ or metric.endswith("_stderr"):
                continue
            error = done["results"][name].get(f"{metric}_stderr,{filter_}")
            ours_key = f"{name}_{metric}" + ("" if filter_ == "none" else f"_{filter_}")
            mine, mine_error = report.get(ours_key), report.get(ours_key + "_error")
            seen += 1
            if "perplexity" in metric:
                good = mine and abs(mine / value - 1) < 1e-5 and (error == "N/A" and mine_error is None or abs(mine_error / error - 1) < 1e-3)
            else:
                good = mine is not None and f"{mine:.4f}" == f"{value:.4f}" and (mine_error is None if error == "N/A" else f"{mine_error:.4f}" == f"{error:.4f}")
            print(f"# {ours_key}: {mine} ± {mine_error}, theirs {value} ± {error}")
            if not good:
                wrong.append(ours_key)
    return wrong, seen


def largest_difference(rows, done):
    """Of log-likelihoods, and prompts that differ."""
    worst, prompts, answers = 0, 0, 0
    by = {(r["task"], r["row"]): r for r in rows}
    for task, samples in done["samples"].items():
        for s in samples:
            r = by[task, s["doc_id"]]
            prompts += s["arguments"][0][0] != r["prompt"] if isinstance(s["arguments"], list) else s["arguments"]["gen_args_0"]["arg_0"] != r["prompt"]
            if "answer" in r:
                answers += s["resps"][0][0] != r["answer"]
            elif "words" in r: # a text: the sum of its windows
                worst = max(worst, abs(float(s["resps"][0][0]) - sum(r["log_probs"])) / len(r["prompt"]))
            else:
                lls = [float(x[0][0]) for x in s["resps"]]
                worst = max([worst] + [abs(a - b) for a, b in zip(lls, r["log_probs"], strict=True)])
    return worst, prompts, answers


def main():
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["HF_HOME"] = folder + "/hub"
        make_files(rng)
        model = make_model(rng)
        quick_f1()
        groups = ["m_hard", "m_easy", "m_all", "m_plain"]
        files = [f"tasks/{n}.yaml" for n in BODIES]
        for _ in range(4): # to leave rows out may change the examples of the others
            bad = close_rows(ours(model, files + ["tasks/_m_all.yaml"], "first")[1])
            if not bad:
                break
            drop(bad)
        tap.ok(not bad, "rows with clear margins are found")
        for chat in (False, True):
            names = list(BODIES)
            more = ["--apply-chat-template"] if chat else []
            report, rows = ours(model, files + ["tasks/_m_all.yaml"], "all", *more)
            report.update({k: v for k, v in ours(model, ["tasks/_m_plain.yaml"], "plain", *more)[0].items() if k.startswith("m_plain")})
            done = theirs(model, [names + ["m_all"], ["m_plain"]], chat)
            how = "with a chat template" if chat else "without a chat template"
            worst, prompts, answers = largest_difference(rows, done)
            tap.ok(prompts == 0, f"{how}: prompts are the same", f"{prompts} differ")
            tap.ok(worst < 1e-4, f"{how}: log-likelihoods", f"off by {worst:.2g}")
            tap.ok(answers == 0, f"{how}: answers are the same", f"{answers} differ")
            if chat: # margins were looked at without it
                continue
            for name in names + ["m_one", "m_two", "m_three"] + groups:
                wrong, seen = compare(report, done, [name])
                tap.ok(seen > 0 and not wrong, f"{how}: {name}, {seen} values and errors", ", ".join(wrong))
        # transformers obeys the model's generation_config.json, and counts padding as said: one row at a time has none
        json.dump({"repetition_penalty": 1.3, "no_repeat_ngram_size": 4}, open(f"{model}/generation_config.json", "w"))
        names = ["t_gsm", "t_trivia"]
        report, rows = ours(model, [f"tasks/{n}.yaml" for n in names], "strict")
        done = theirs(model, [names], False, 1)
        prompts, answers = largest_difference(rows, done)[1:]
        tap.ok(prompts == 0 and answers == 0, "generation_config.json: answers are the same", f"{prompts} prompts and {answers} answers differ")
        tap.ok(not compare(report, done, names)[0], "generation_config.json: values and errors")
    tap.done()


if __name__ == "__main__":
    main()
