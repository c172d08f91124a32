#!/usr/bin/env python3
"""gguf_llama_peer.py - what build/export_gguf writes, beside llama.cpp itself.

Blocks of every type have the bits that ggml_quantize_chunk makes. llama.cpp loads a small random model of each family, in F32,
and its greedy tokens are those of our own decoding up to the first step at which its two best logits are nearly equal. Its
tokenizer gives our ids. An adapter that llama.cpp applies gives the tokens of the merged model.
BUILD: the build folder (default build). TUNE_SHARED: real files (default ../shared), such as stories260K.
"""
import ctypes
import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np
import tap
import xllamacpp

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
SHARED = os.path.abspath(os.environ.get("TUNE_SHARED", "../shared"))
TOKENS, CLOSE = 64, 1e-3
LONG = "phi3, longrope"
SIZES = "--layers 4 --hidden-size 64 --intermediate-size 96 --heads 4 --kv-heads 2 --vocab-size 400 --max-positions 256".split()
# family: a known model like it, more options, changes of config.json
FAMILIES = {
    "llama": ("smollm2-135m", [], {}),
    "llama-3.2": ("llama-3.2-1b", ["--head-dim", "16"], {"rope_scaling": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
                  "high_freq_factor": 4.0, "original_max_position_embeddings": 32}}),
    "llama with biases": ("smollm2-135m", [], {"attention_bias": True, "mlp_bias": True}),
    "llama, linear": ("smollm2-135m", [], {"rope_scaling": {"rope_type": "linear", "factor": 3.0}}),
    "llama, wide heads": ("smollm2-135m", ["--head-dim", "24"], {}),
    "mistral": ("mistral-7b", [], {}),
    "granite": ("granite-3.1-2b", [], {}),
    "qwen2": ("qwen2.5-0.5b", [], {}),
    "qwen2, yarn": ("qwen2.5-0.5b", [], {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}}),
    "qwen3": ("qwen3-0.6b", ["--head-dim", "32"], {}),
    "smollm3": ("smollm3-3b", [], {}),
    "phi3": ("phi-3-mini-4k", [], {}),
    LONG: ("phi-3-mini-4k", [], {"original_max_position_embeddings": 256, "max_position_embeddings": 1024, "rope_scaling": {"type": "longrope",
                       "long_factor": [1.5 + i for i in range(8)], "short_factor": [1.0 + i / 8 for i in range(8)]}}),
    "olmo2": ("olmo2-1b", [], {}),
    "gemma3": ("gemma-3-270m", ["--head-dim", "16"], {"query_pre_attn_scalar": 16, "sliding_window": 16,
               "layer_types": ["sliding_attention"] * 3 + ["full_attention"]}),
}


def run(*command, **more):
    done = subprocess.run([os.path.join(BUILD, command[0]), *command[1:]], capture_output=True, text=True, timeout=600, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def export(folder, out, *options):
    run("export_gguf", "--model", folder, out, *options)
    return out


class Served:
    """A file as llama.cpp's server has it, computing in F32 on one thread."""

    def __init__(self, path, adapter=None, context=256):
        p = xllamacpp.CommonParams()
        p.model.path = path
        p.n_ctx, p.n_parallel, p.warmup, p.verbosity, p.port, p.fit_params = context, 1, False, 0, 0, False
        p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
        p.cache_type_k = p.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        p.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        p.swa_full = True
        if adapter:
            p.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(path=adapter, scale=1.0)]
        self.server = xllamacpp.Server(p)

    def post(self, path, body):
        request = urllib.request.Request(self.server.listening_address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)

    def go_on(self, prompt, tokens):
        """Ids, and how far the two best logits are apart at each step."""
        got = self.post("/completion", {"prompt": prompt, "n_predict": tokens, "temperature": 0, "samplers": ["top_k"], "top_k": 1, "n_probs": 2,
                                        "return_tokens": True, "cache_prompt": False})
        steps = got.get("completion_probabilities", [])
        gaps = [p["top_logprobs"][0]["logprob"] - p["top_logprobs"][1]["logprob"] for p in steps]
        return got["tokens"], gaps

    def ids(self, text):
        return self.post("/tokenize", {"content": text, "add_special": True, "parse_special": True})["tokens"]


def first_difference(name, mine, theirs, gaps):
    """"" and the steps compared, or what differs."""
    for t, (a, b) in enumerate(zip(mine, theirs)):
        if t < len(gaps) and gaps[t] < CLOSE:
            return "", t
        if a != b:
            return f"{name}, step {t}: {a}, llama.cpp {b}, with {gaps[t]:.2e} between the two best", t
    return "", min(len(mine), len(theirs))


def compare(name, served, mine, prompts, tokens=TOKENS):
    steps = 0
    for row, prompt in enumerate(prompts):
        why, n = first_difference(f"prompt {row}", mine[row], *served.go_on(prompt, tokens))
        if why:
            return why
        steps += n
    all_steps = len(prompts) * tokens
    print(f"# {name}: {steps} of {all_steps} steps compared")
    return "" if 2 * steps >= all_steps else f"only {steps} of {all_steps} steps could be compared"


def ours(folder, prompts, adapter=None, tokens=TOKENS):
    text = "".join(" ".join(map(str, p)) + "\n" for p in prompts)
    lines = run("tests/peers/generate_peer", folder, str(tokens), *([adapter] if adapter else []), input=text).splitlines()
    return [[int(x) for x in line.split()] for line in lines[:len(prompts)]]


def prompts_of(vocabulary, lengths=(1, 3, 8, 40)):
    draw = random.Random(1)
    return [[draw.randrange(3, vocabulary) for _ in range(n)] for n in lengths]


def make(home, name):
    like, options, changes = FAMILIES[name]
    folder = os.path.join(home, name.replace(" ", "-").replace(",", ""))
    if not os.path.isdir(folder):
        if changes:  # the shapes of the weights follow the config, so a first model gives the tokenizer
            run("init_model", "--like", like, *SIZES, *options, "--seed", "3", folder)
            with open(folder + "/config.json") as f:
                config = json.load(f)
            config.update(changes)
            for key in ("rope_parameters",) if "rope_scaling" in changes else ():
                config.pop(key, None)
            with open(folder + "/config.json", "w") as f:
                json.dump(config, f)
            if "attention_bias" in changes:
                add_biases(folder, config)
        else:
            run("init_model", "--like", like, *SIZES, *options, "--seed", "3", folder)
        spread(folder)
    return folder


def tensors(folder):
    """Header, and names with dtype, shape and bytes of model.safetensors."""
    with open(folder + "/model.safetensors", "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(size))
        data = f.read()
    header.pop("__metadata__", None)
    return {n: (e["shape"], data[e["data_offsets"][0]:e["data_offsets"][1]], e["dtype"]) for n, e in header.items()}


def floats(entry):
    shape, data, dtype = entry
    if dtype == "BF16":
        x = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    else:
        x = np.frombuffer(data, "<f4" if dtype == "F32" else "<f2").astype("<f4")
    return x.reshape(shape)


def save(folder, arrays):
    header, at, blobs = {}, 0, []
    for name, x in arrays.items():
        blob = np.ascontiguousarray(x, "<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    with open(folder + "/model.safetensors", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + b"".join(blobs))


def add_biases(folder, config):
    draw = np.random.default_rng(5)
    arrays = {n: floats(e) for n, e in tensors(folder).items()}
    for name in [n for n in arrays if n.endswith("_proj.weight")]:
        arrays[name.replace(".weight", ".bias")] = draw.standard_normal(arrays[name].shape[0]).astype("<f4") * 0.3
    save(folder, arrays)


def spread(folder):
    """Weights that are larger, and norms that are not 1: then each of them decides about the tokens."""
    draw = np.random.default_rng(4)
    arrays = {n: floats(e) for n, e in tensors(folder).items()}
    for name, x in arrays.items():
        arrays[name] = x * 6 if x.ndim == 2 else x + draw.standard_normal(x.shape).astype("<f4") * 0.2
    save(folder, arrays)


def family(home, name, lengths=(1, 3, 8, 40), context=256, tokens=TOKENS):
    folder = make(home, name)
    prompts = prompts_of(400, lengths)
    served = Served(export(folder, f"{folder}-{context}.gguf", "--type", "f32", "--pre", "smollm"), context=context)
    return compare(name, served, ours(folder, prompts, tokens=tokens), prompts, tokens)


def texts(count):
    """Texts of this tree's own sample sets, and some that are hard to split."""
    lines = []
    for path in sorted(glob.glob("datasets/*.txt") + glob.glob("datasets/*.jsonl") + glob.glob("docs/*.md")):
        with open(path, encoding="utf-8") as f:
            lines += [line for line in f.read().split("\n") if line.strip()]
    random.Random(2).shuffle(lines)
    hard = ["Hello  world", " a", "\n\n x\t\ty ", "it's 12345,678.90!", "naïve café – “quote”", "日本語のテキスト", "😀 emoji 👩‍👩‍👧", "a<|endoftext|>b", "<|im_start|>user\nHi<|im_end|>\n"]
    return (hard + lines)[:count]


def tokenizer(folder, gguf, count=1000):
    served, lines = Served(gguf), texts(count)
    want = [json.loads(line)["ids"] for line in run("tokenize", "--model", folder, input="".join(json.dumps({"text": t}) + "\n" for t in lines)).splitlines()]
    wrong = [(t, a, b) for t, a, b in zip(lines, want, map(served.ids, lines)) if a != b]
    print(f"# {os.path.basename(folder)}: {len(lines) - len(wrong)} of {len(lines)} texts have equal ids")
    return f"{len(wrong)} of {len(lines)} texts: {wrong[0]!r}" if wrong else ""


def adapters(home, name, rslora):
    """A random adapter of every linear layer, with a rank of its own for k_proj."""
    base = make(home, name)
    folder = os.path.join(home, f"adapter-{os.path.basename(base)}-{rslora}")
    os.makedirs(folder, exist_ok=True)
    draw, arrays, arrays_of = np.random.default_rng(6), {}, {n: floats(e) for n, e in tensors(base).items()}
    targets = sorted({n.split(".")[-2] for n in arrays_of if n.endswith("_proj.weight")})
    for n, x in arrays_of.items():
        if n.endswith("_proj.weight"):
            r = 2 if "k_proj" in n else 4
            stem = "base_model.model." + n[:-len(".weight")]
            arrays[stem + ".lora_A.weight"] = draw.standard_normal((r, x.shape[1])).astype("<f4") * 0.1
            arrays[stem + ".lora_B.weight"] = draw.standard_normal((x.shape[0], r)).astype("<f4") * 0.1
    save(folder, arrays)
    os.rename(folder + "/model.safetensors", folder + "/adapter_model.safetensors")
    with open(folder + "/adapter_config.json", "w") as f:
        json.dump({"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 4, "lora_alpha": 8, "use_rslora": rslora, "target_modules": targets,
                   "rank_pattern": {"k_proj": 2}, "base_model_name_or_path": None}, f)
    prompts = prompts_of(400)
    whole, alone = base + f"-merged-{rslora}.gguf", base + f"-adapter-{rslora}.gguf"
    plain = export(base, base + "-plain.gguf", "--type", "f32", "--pre", "smollm") if not os.path.exists(base + "-plain.gguf") else base + "-plain.gguf"
    export(base, whole, "--adapter", folder, "--merge", "--type", "f32", "--pre", "smollm")
    export(base, alone, "--adapter", folder, "--type", "f32")
    mine = ours(base, prompts, folder)
    if mine == ours(base, prompts):
        return "the adapter changes nothing: the comparison would be empty"
    return compare(f"{name}, merged", Served(whole), mine, prompts) or compare(f"{name}, applied", Served(plain, alone), mine, prompts)


def every_type(home):
    """llama.cpp loads each type, and its log-probabilities of the best token are near those of F32: nearer, the more bits there are."""
    folder = os.path.join(home, "wide")
    run("init_model", "--like", "smollm2-135m", *SIZES, "--hidden-size", "256", "--intermediate-size", "512", "--seed", "3", folder)
    best, prompts = {}, prompts_of(400, (4, 9, 17, 33))
    for kind in ("f32", "bf16", "f16", "q8_0", "q6_k", "q5_k_m", "q5_1", "q5_0", "q4_k_m", "q4_k", "q4_0"):
        served = Served(export(folder, f"{folder}-{kind}.gguf", "--type", kind, "--pre", "smollm"))
        best[kind] = []
        for prompt in prompts:
            got = served.post("/completion", {"prompt": prompt, "n_predict": 1, "temperature": 0, "n_probs": 399, "ignore_eos": True, "cache_prompt": False})
            # the server has none for a token that is a part of a character
            step = got.get("completion_probabilities", [{"top_logprobs": []}])[0]
            best[kind].append({p["id"]: p["logprob"] for p in step["top_logprobs"]})
    far = {}
    for kind in best:
        pairs = np.array([(a[i], b[i]) for a, b in zip(best["f32"], best[kind]) for i in a if i in b and a[i] > -1e9])
        if len(pairs) < 400:
            return f"{kind}: only {len(pairs)} probabilities"
        far[kind] = float(np.mean(np.abs(pairs[:, 0] - pairs[:, 1])) / np.std(pairs[:, 0]))
    print("# mean distance of log-probabilities from F32's, in their spreads: " + ", ".join(f"{kind} {x:.3g}" for kind, x in far.items()))
    limits = {"f32": 0, "bf16": far["q6_k"], "f16": far["bf16"], "q8_0": far["q6_k"], "q6_k": far["q5_k_m"], "q5_k_m": far["q4_k_m"], "q5_1": far["q4_0"], "q5_0": far["q4_0"],
              "q4_k_m": far["q4_k"]}
    wrong = [kind for kind, most in limits.items() if far[kind] > most] + [kind for kind in far if not far[kind] < 0.4]
    return f"too far: {wrong}" if wrong else ""


CHATS = [[("user", "What is two and two?")], [("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello."), ("user", "Name a <colour>.  ")],
         [("user", "a\nb\n"), ("assistant", "c"), ("user", "d")]]


def template(home, path, begins):
    """The text of a rendered chat, and its ids as the server takes them: with one BOS if the tokenizer adds one, as begins says."""
    folder = tempfile.mkdtemp(dir=home)
    os.rmdir(folder)
    shutil.copytree(make(home, "llama"), folder)
    shutil.copy(path, folder + "/chat_template.jinja")
    with open(folder + "/tokenizer_config.json", "w") as f:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"}, f)
    if begins:
        with open(folder + "/tokenizer.json", encoding="utf-8") as f:
            tokenizer = json.load(f)
        bos = "<|endoftext|>"
        tokenizer["post_processor"] = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": bos, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                                       "pair": [], "special_tokens": {bos: {"id": bos, "ids": [0], "tokens": [bos]}}}
        with open(folder + "/tokenizer.json", "w", encoding="utf-8") as f:
            json.dump(tokenizer, f)
    served = Served(export(folder, folder + ".gguf", "--type", "f32", "--pre", "smollm"))
    for chat in CHATS:
        messages = [{"role": role, "content": content} for role, content in chat]
        mine = json.loads(run("tests/peers/chat_peer", "chat", folder, input=json.dumps({"messages": list(map(json.dumps, messages)), "prompt": True}) + "\n"))
        if "error" in mine:
            return mine["error"]
        theirs = served.post("/apply-template", {"messages": messages})["prompt"]
        # llama.cpp takes a BOS away that its tokenizer will add
        if theirs != (mine["text"].removeprefix("<|endoftext|>") if begins else mine["text"]):
            return f"{theirs!r}, expected {mine['text']!r}"
        want = mine["ids"] if not begins or mine["ids"][0] == 0 else [0] + mine["ids"]
        if served.ids(theirs) != want:
            return f"ids {served.ids(theirs)[:8]}, expected {want[:8]}"
    return ""


def blocks(name, id):
    """Bits of build/tests/peers/gguf_llama_peer for rows drawn here, and those of ggml_quantize_chunk."""
    quantise = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(xllamacpp.__file__), "xllamacpp*.so"))[0]).ggml_quantize_chunk
    quantise.restype = ctypes.c_size_t
    quantise.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    draw, rows, columns = np.random.default_rng(1), 64, 1024
    trials = []
    for trial in range(40):
        x = draw.standard_normal((rows, columns)).astype("<f4") * np.float32(10.0 ** draw.integers(-6, 3))
        if trial % 4 == 1:
            x[draw.random(x.shape) < 0.5] = 0
        elif trial % 4 == 2:
            x = x ** 3
        elif trial % 4 == 3:
            x[:rows // 2], x = 0, np.round(x * 4) / 4
        trials.append(x)
    x = np.ascontiguousarray(np.concatenate(trials), "<f4")
    done = subprocess.run([os.path.join(BUILD, "tests/peers/gguf_llama_peer"), name, str(columns)], input=x.tobytes(), capture_output=True, check=True)
    mine = np.frombuffer(done.stdout, np.uint8)
    theirs = np.zeros_like(mine)
    if quantise(id, x.ctypes.data, theirs.ctypes.data, 0, len(x), columns, None) != len(mine):
        return f"{len(mine)} bytes"
    if not theirs.any():
        return "llama.cpp wrote nothing"
    print(f"# {name}: {len(mine)} bytes compared")
    return f"{(mine != theirs).sum()} of {len(mine)} bytes differ" if (mine != theirs).any() else ""


def main():
    home = tempfile.mkdtemp()
    try:
        for name, id in {"F32": 0, "F16": 1, "BF16": 30, "Q8_0": 8, "Q4_0": 2, "Q5_0": 6, "Q5_1": 7, "Q6_K": 14, "Q5_K": 13, "Q4_K": 12}.items():
            tap.case(f"blocks of {name} are ggml's to the bit", blocks, name, id)
        for name in FAMILIES:
            if name == LONG:  # llama.cpp chooses by its context, and we by the text
                tap.case(f"{name}, short: greedy tokens", family, home, name)
                tap.case(f"{name}, long: greedy tokens", family, home, name, (260, 300), 512)
            else:
                tap.case(f"{name}: greedy tokens", family, home, name)
        tap.case("every type is read, and means about the same", every_type, home)
        tap.case("ids of 1,000 texts, byte level", tokenizer, make(home, "llama"), os.path.join(home, "llama-256.gguf"))
        for path in sorted(glob.glob("defaults/chat_templates/*.jinja") + glob.glob(os.path.join(SHARED, "data/chat-templates/*.jinja"))):
            for begins in (False, True):
                tap.case(f"chats by {os.path.basename(path)}{', a tokenizer that adds BOS' if begins else ''}", template, home, path, begins)
        for name, rslora in (("llama", False), ("llama", True), ("qwen2", False), ("phi3", True), ("gemma3", False)):
            tap.case(f"{name}: an adapter that llama.cpp applies{', rsLoRA' if rslora else ''}", adapters, home, name, rslora)
        stories = os.path.join(SHARED, "data/stories260K-hf")
        if os.path.isdir(stories):
            out = os.path.join(home, "stories.gguf")
            tap.case("stories260K: greedy tokens", lambda: compare("stories260K", Served(export(stories, out, "--type", "f32")),
                     ours(stories, prompts_of(512)), prompts_of(512)))
            tap.case("stories260K: ids of 1,000 texts", tokenizer, stories, out)
        else:
            tap.skip("stories260K", f"no {stories}")
    finally:
        shutil.rmtree(home)
    tap.done()


if __name__ == "__main__":
    main()
