"""make_models.py [FOLDER [MODEL...]] - tiny random models of every supported family, and what they compute, in float64.

Models, saving and gradients are transformers' and PyTorch's own. transformers computes norms, softmax and rotary angles
in float32 whatever the model's dtype; these three are replaced here by the same formulas in float64, and the result is
checked against the untouched float32 model. FOLDER (default: this one) receives one folder per model; README.md there
says what is in it.
"""
import json
import math
import os
import shutil
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

B1 = dict(vocab_size=67, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
          num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2,
          tie_word_embeddings=True)
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}

# name: class prefix, configuration, lengths of the rows, masked tokens at the begin of each row, how it is saved,
# and where given the same configuration as transformers 4 wrote it
MODELS = {
    "llama-tied": ("Llama", dict(rope_parameters=ROPE), [24], [0]),
    "llama-untied": ("Llama", dict(rope_parameters=ROPE, tie_word_embeddings=False), [24], [5], dict(dtype=torch.bfloat16)),
    "llama-biases": ("Llama", dict(rope_parameters=ROPE, attention_bias=True, mlp_bias=True), [24], [0]),
    "llama-rope-linear": ("Llama", dict(rope_parameters={"rope_type": "linear", "rope_theta": 5000.0, "factor": 3.0}), [24], [0],
                          {}, dict(rope_theta=5000.0, rope_scaling={"type": "linear", "factor": 3.0})),
    # wave lengths 6, 63, 628, 6283 against 64/4 and 64/1: kept, blended, divided, divided
    "llama-rope-llama3": ("Llama", dict(rope_parameters=LLAMA3, head_dim=8, max_position_embeddings=128), [24], [0], {},
                          dict(rope_theta=10000.0, rope_scaling={k: v for k, v in LLAMA3.items() if k != "rope_theta"})),
    "llama-head-dim": ("Llama", dict(rope_parameters=ROPE, head_dim=6, tie_word_embeddings=False), [24], [0],
                       dict(max_shard_size="9KB")),
    "llama-rows": ("Llama", dict(rope_parameters=ROPE), [24, 15, 9], [4, 0, 6]),
    "qwen2": ("Qwen2", dict(rope_parameters=ROPE | {"rope_theta": 1000000.0}, rms_norm_eps=1e-6), [24], [0],
              dict(dtype=torch.float16),
              dict(rope_theta=1000000.0, sliding_window=7, use_sliding_window=False, max_window_layers=1)),
    "qwen2-window": ("Qwen2", dict(rope_parameters=ROPE, use_sliding_window=True, sliding_window=7, max_window_layers=1),
                     [24], [0]),
    "qwen3": ("Qwen3", dict(rope_parameters=ROPE | {"rope_theta": 1000000.0}, rms_norm_eps=1e-6, head_dim=6), [24, 17], [3, 0]),
    "mistral": ("Mistral", dict(rope_parameters=ROPE, sliding_window=7, tie_word_embeddings=False), [24], [0]),
    "granite": ("Granite", dict(rope_parameters=ROPE, embedding_multiplier=3.0, attention_multiplier=0.35,
                                residual_multiplier=0.7, logits_scaling=2.5), [24], [2]),
    "smollm3": ("SmolLM3", dict(rope_parameters=ROPE | {"rope_theta": 2000000.0}, rms_norm_eps=1e-6, num_hidden_layers=3,
                                no_rope_layer_interval=2, use_sliding_window=True, sliding_window=7, pad_token_id=0), [24, 19], [0, 4], {},
                dict(rope_theta=2000000.0, sliding_window=7)),
    # within the original context of 32: the short factors
    "phi3": ("Phi3", dict(rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0, 1.25],
                                           "long_factor": [1.5, 3.0], "original_max_position_embeddings": 32},
                          original_max_position_embeddings=32, pad_token_id=0, tie_word_embeddings=False, sliding_window=7), [24], [0], {},
             dict(rope_theta=10000.0, original_max_position_embeddings=32, sliding_window=7,
                  rope_scaling={"type": "longrope", "short_factor": [1.0, 1.25], "long_factor": [1.5, 3.0]})),
    # beyond it, as Phi-4-mini: 6 of 8 numbers of a head are rotated
    "phi3-long": ("Phi3", dict(rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0, 1.25, 1.5],
                                                "long_factor": [1.5, 3.0, 4.5], "original_max_position_embeddings": 16,
                                                "partial_rotary_factor": 0.75},
                               original_max_position_embeddings=16, hidden_size=32, pad_token_id=0), [24, 11], [0, 3]),
    "olmo2": ("Olmo2", dict(rope_parameters=ROPE | {"rope_theta": 500000.0}, rms_norm_eps=1e-6, attention_bias=True, tie_word_embeddings=False),
              [24, 13], [0, 2], {}, dict(rope_theta=500000.0)),
    "gemma3": ("Gemma3Text", dict(rope_parameters={"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
                                                   "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}},
                                  rms_norm_eps=1e-6, head_dim=6, num_hidden_layers=3, sliding_window=7, query_pre_attn_scalar=9,
                                  layer_types=["sliding_attention", "full_attention", "sliding_attention"]), [24, 15], [0, 3], {},
               dict(rope_theta=1000000.0, rope_local_base_freq=10000.0, rope_scaling={"rope_type": "linear", "factor": 8.0}, sliding_window=7,
                    sliding_window_pattern=2)),
}
CAUSAL = {"Gemma3Text": "Gemma3"}  # where the model's class has another prefix than its configuration


def randomise(model, generator):
    """Values that are neither zero nor one anywhere, so that a forgotten bias or norm weight shows."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            r = torch.randn(p.shape, generator=generator)
            if p.dim() == 2 and "embed" in name:
                p.copy_(0.8 * r)
            elif p.dim() == 2:
                p.copy_(1.3 * r / math.sqrt(p.shape[1]))
            else:
                p.copy_(0.3 * r + (1.0 if "norm" in name and "Gemma3" not in type(model).__name__ else 0.0))


def frequencies(config, positions=1, layer_type=None):
    """Rotary frequencies in float64: Su et al. 2021; linear scaling; Llama 3.1's three regimes; longrope for so many positions."""
    rope = config.rope_parameters[layer_type] if layer_type else config.rope_parameters
    d = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    d = int(d * rope.get("partial_rotary_factor", 1.0))
    f = rope["rope_theta"] ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    if rope["rope_type"] == "linear":
        f = f / rope["factor"]
    if rope["rope_type"] == "llama3":
        factor, low, high = rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"]
        old = rope["original_max_position_embeddings"]
        s = ((old * f / (2 * math.pi) - low) / (high - low)).clamp(0, 1)  # 0: divided, 1: kept
        assert (s == 0).any() and (s == 1).any() and ((s > 0) & (s < 1)).any(), "a regime is missing"
        f = (1 - s) * f / factor + s * f
    if rope["rope_type"] == "longrope":
        f = f / torch.tensor(rope["long_factor" if positions > rope["original_max_position_embeddings"] else "short_factor"], dtype=torch.float64)
    return f


def in_float64(model):
    """Replace what transformers computes in float32 whatever the dtype."""
    scale = 1.0
    if "full_attention" in model.config.rope_parameters:
        for kind in model.config.rope_parameters:
            there = getattr(model.model.rotary_emb, kind + "_inv_freq")
            assert torch.allclose(frequencies(model.config, layer_type=kind), there.double(), rtol=1e-6)
    else:
        assert torch.allclose(frequencies(model.config), model.model.rotary_emb.inv_freq.double(), rtol=1e-6)
    if model.config.rope_parameters.get("rope_type") == "longrope":
        old = model.config.rope_parameters["original_max_position_embeddings"]
        scale = math.sqrt(1 + math.log(model.config.max_position_embeddings / old) / math.log(old))
    assert math.isclose(scale, getattr(model.model.rotary_emb, "attention_scaling", 1.0))

    def rotary(x, position_ids, layer_type=None):
        angles = position_ids[..., None].double() * frequencies(model.config, int(position_ids.max()) + 1, layer_type)
        angles = torch.cat((angles, angles), -1)
        return (angles.cos() * scale).to(x.dtype), (angles.sin() * scale).to(x.dtype)

    model.model.rotary_emb.forward = rotary
    for m in model.modules():
        if type(m).__name__ == "Gemma3RMSNorm":
            m.forward = lambda x, m=m: (1 + m.weight) * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + m.eps))
        elif type(m).__name__.endswith("RMSNorm"):
            m.forward = lambda x, m=m: m.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + m.variance_epsilon))
    return model


class softmax_in_float64:
    def __enter__(self):
        self.softmax = F.softmax
        F.softmax = lambda x, dim=None, dtype=None, **_: self.softmax(x, dim=dim, dtype=x.dtype)

    def __exit__(self, *_):
        F.softmax = self.softmax


def forward(model, ids, labels, smoothing=0.0):
    with softmax_in_float64():
        logits = model(input_ids=ids, use_cache=False).logits
    assert logits.dtype == torch.float64
    return logits, F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum",
                                   label_smoothing=smoothing)


def load(folder, dtype=torch.float64):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").train()
    return in_float64(model) if dtype == torch.float64 else model


def rows(lengths, masked, vocabulary, generator):
    """ids [B,T] padded with 0, labels [B,T]: the next token, -100 where there is none or it is masked."""
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.int64)
    labels = torch.full_like(ids, -100)
    for b, (n, m) in enumerate(zip(lengths, masked)):
        ids[b, :n] = torch.randint(3, vocabulary, (n,), generator=generator)
        labels[b, : n - 1] = ids[b, 1:n]
        labels[b, : max(m - 1, 0)] = -100  # tokens 0..m-1 are the prompt: not to be predicted
    return ids, labels


def expected(folder, lengths, masked, seed):
    model = load(folder)
    ids, labels = rows(lengths, masked, model.config.vocab_size, torch.Generator().manual_seed(seed))
    count = int((labels != -100).sum())
    logits, loss = forward(model, ids, labels)
    plain = load(folder, torch.float32)(input_ids=ids, use_cache=False).logits.detach()
    difference = float((plain.double() - logits.detach()).norm() / logits.detach().norm())
    assert difference < 2e-6, difference
    (loss / count).backward()
    out = {"input_ids": ids, "labels_shifted": labels, "lengths": torch.tensor(lengths), "logits": logits.detach(),
           "loss_sum": loss.detach(), "label_count": torch.tensor(count), "loss": (loss / count).detach()}
    for name, p in model.named_parameters():
        out["grad." + name] = p.grad.float()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    losses = []
    for step in range(6):
        optimizer.zero_grad()
        mean = forward(model, ids, labels)[1] / count
        losses.append(mean.detach())
        if step < 5:
            mean.backward()
            optimizer.step()
    out["adamw_losses"] = torch.stack(losses)
    return out, difference


def as_transformers_4(config, old):
    """config.json as version 4 wrote it: rope_theta and rope_scaling at the top, torch_dtype."""
    c = {k: v for k, v in config.items() if k not in ("rope_parameters", "dtype", "layer_types", "sliding_window")}
    if "head_dim" not in old and config["model_type"] == "qwen2":
        c.pop("head_dim", None)
    return c | {"torch_dtype": config["dtype"], "rope_scaling": None, "transformers_version": "4.46.0"} | old


def same_meaning(folder):
    a, b = (AutoConfig.from_pretrained(os.path.join(folder, f)) for f in ("config.json", "config-transformers-4.json"))
    b.rope_parameters.pop("type", None)  # the older spelling of rope_type
    for key in ("rope_parameters", "dtype", "layer_types", "sliding_window", "head_dim", "num_key_value_heads"):
        assert getattr(a, key, None) == getattr(b, key, None), (key, getattr(a, key), getattr(b, key))


def make(root, name, seed):
    prefix, changes, lengths, masked = MODELS[name][:4]
    saved, old = (MODELS[name][4:] + ({}, None))[:2]
    folder = os.path.join(root, name)
    shutil.rmtree(folder, ignore_errors=True)
    config = getattr(transformers, prefix + "Config")(**(B1 | changes))
    model = getattr(transformers, CAUSAL.get(prefix, prefix) + "ForCausalLM")(config)
    randomise(model, torch.Generator().manual_seed(seed))
    shards = {k: v for k, v in saved.items() if k == "max_shard_size"}
    model.to(saved.get("dtype", torch.float32)).save_pretrained(folder, **shards)
    os.remove(os.path.join(folder, "generation_config.json"))
    out, difference = expected(folder, lengths, masked, seed + 1000)
    save_file(out, os.path.join(folder, "expected.safetensors"), metadata={"format": "pt"})
    if old:
        with open(os.path.join(folder, "config.json")) as f:
            config = json.load(f)
        with open(os.path.join(folder, "config-transformers-4.json"), "w") as f:
            f.write(json.dumps(as_transformers_4(config, old), indent=2, sort_keys=True) + "\n")
        same_meaning(folder)
    losses = [float(x) for x in out["adamw_losses"]]
    print(f"# {name:18} loss {losses[0]:.6f} -> {losses[-1]:.6f}, float32 differs by {difference:.1e}")


def main(root, only):
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)  # the order of sums, and with it the last bits, is then fixed
    for i, name in enumerate(MODELS):
        if not only or name in only:
            make(root, name, i + 1)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)), sys.argv[2:])
