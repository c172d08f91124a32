/* foreign.c - options of other programs, and what they are called here. */
#include "flags/state.h"

#include <stdio.h>
#include <string.h>

#include "core/nearest.h"

/* A name that transformers, TRL, PEFT, torchtune, LLaMA-Factory or axolotl use. */
struct foreign {
    const char *name;   /* with '-' between words */
    const char *option; /* our option; NULL: there is none */
    const char *say;    /* the value to give, or why there is none */
};

static const struct foreign table[] = {
    {"bf16", "dtype", "bfloat16"},
    {"fp16", "dtype", "bfloat16 (there is no training in float16)"},
    {"tf32", NULL, "products are float32 or bfloat16"},
    {"torch-dtype", "dtype", NULL},
    {"load-in-4bit", "base-dtype", "nf4"},
    {"load-in-8bit", "base-dtype", "nf4 or bfloat16 (there are no 8-bit weights)"},
    {"quantization-bit", "base-dtype", "nf4"},
    {"gradient-checkpointing", "activation-checkpointing", "full"},
    {"enable-activation-checkpointing", "activation-checkpointing", "full"},
    {"model-name-or-path", "model", NULL},
    {"model-name", "model", NULL},
    {"pretrained-model", "model", NULL},
    {"base-model", "model", NULL},
    {"use-cpu", "device", "cpu"},
    {"no-cuda", "device", "cpu"},
    {"dataset-name", "dataset", NULL},
    {"dataset-path", "dataset", NULL},
    {"data-path", "dataset", NULL},
    {"train-file", "dataset", NULL},
    {"validation-file", "eval-dataset", NULL},
    {"val-set-size", "train-split", "(0.95 holds out 5 %)"},
    {"val-size", "train-split", "(0.95 holds out 5 %)"},
    {"test-size", "train-split", "(0.95 holds out 5 %)"},
    {"dataset-text-field", "text-field", NULL},
    {"text-column", "text-field", NULL},
    {"data-files", "dataset", NULL},
    {"eos-token", "append-token", NULL},
    {"max-prompt-length", "max-length", "(of prompt and answer together)"},
    {"cutoff-len", "max-length", NULL},
    {"max-seq-length", "max-length", NULL},
    {"max-seq-len", "max-length", NULL},
    {"model-max-length", "max-length", NULL},
    {"sequence-len", "max-length", NULL},
    {"block-size", "max-length", NULL},
    {"per-device-train-batch-size", "batch-size", NULL},
    {"micro-batch-size", "batch-size", NULL},
    {"per-device-eval-batch-size", "batch-size", "(evaluations use it too)"},
    {"gradient-accumulation-steps", "accumulate", NULL},
    {"template", "chat-template", NULL},
    {"completion-only-loss", "train-on", "completion"},
    {"assistant-only-loss", "train-on", "assistant"},
    {"train-on-inputs", "train-on", "all"},
    {"train-on-prompt", "train-on", "all"},
    {"group-texts", "chunk", NULL},
    {"max-samples", "limit", NULL},
    {"max-train-samples", "limit", NULL},
    {"max-eval-samples", "eval-rows", NULL},
    {"group-by-length", NULL, "--packing leaves less padding"},
    {"streaming", NULL, "rows are always read when they are needed"},
    {"dataloader-num-workers", NULL, "one thread always reads ahead"},
    {"num-train-epochs", "epochs", NULL},
    {"num-epochs", "epochs", NULL},
    {"learning-rate", "lr", NULL},
    {"lr-scheduler-type", "schedule", NULL},
    {"lr-scheduler", "schedule", NULL},
    {"num-warmup-steps", "warmup-steps", NULL},
    {"num-decay-steps", "decay-ratio", "(a share of the steps)"},
    {"cosine-min-lr-ratio", "min-lr-ratio", NULL},
    {"min-lr-rate", "min-lr-ratio", NULL},
    {"min-lr", "min-lr-ratio", "(a share of --lr)"},
    {"max-grad-norm", "clip-norm", NULL},
    {"optim", "optimizer", NULL},
    {"adam-beta1", "beta1", NULL},
    {"adam-beta2", "beta2", NULL},
    {"adam-epsilon", "eps", NULL},
    {"neftune-noise-alpha", "neftune-alpha", NULL},
    {"ema-decay", "ema", NULL},
    {"model-ema-decay", "ema", NULL},
    {"use-ema", "ema", "0.999"},
    {"label-smoothing-factor", "label-smoothing", NULL},
    {"output-dir", "output", NULL},
    {"run-name", "output", "runs/NAME"},
    {"overwrite-output-dir", "overwrite", NULL},
    {"resume-from-checkpoint", "resume", NULL},
    {"logging-steps", "log-every", NULL},
    {"save-steps", "save-every", NULL},
    {"save-strategy", "save-every", NULL},
    {"saves-per-epoch", "save-every", "epoch, or a share of the run such as 0.1"},
    {"evals-per-epoch", "eval-every", "epoch, or a share of the run such as 0.1"},
    {"save-total-limit", "keep-last", NULL},
    {"eval-steps", "eval-every", NULL},
    {"eval-strategy", "eval-every", NULL},
    {"evaluation-strategy", "eval-every", NULL},
    {"early-stopping-patience", "patience", NULL},
    {"load-best-model-at-end", NULL, "checkpoint-best is always kept"},
    {"report-to", "logger", "tensorboard or csv"},
    {"lora-rank", "lora-r", NULL},
    {"rank", "lora-r", NULL},
    {"lora-target", "lora-targets", NULL},
    {"target-modules", "lora-targets", NULL},
    {"lora-target-modules", "lora-targets", NULL},
    {"add-special-tokens", "add-tokens", NULL},
    {"additional-special-tokens", "add-tokens", NULL},
    {"lora-modules-to-save", "modules-to-save", NULL},
    {"additional-target", "modules-to-save", NULL},
    {"use-dora", "lora-dora", NULL},
    {"use-rslora", "lora-rslora", NULL},
    {"finetuning-type", NULL, "finetune_full and finetune_lora are two programs"},
    {"use-peft", NULL, "finetune_full and finetune_lora are two programs"},
    {"do-train", NULL, "a recipe always trains"},
    {"stage", NULL, "each kind of training is a program: finetune_full, finetune_lora, finetune_dpo"},
    {"dpo-beta", "beta", NULL},
    {"pref-beta", "beta", NULL},
    {"pref-loss", "loss", NULL},
    {"loss-type", "loss", NULL},
    {"ref-model", NULL, "the reference is the model as it was read"},
    {"precompute-ref-log-probs", "reference", NULL},
    {"torch-compile", NULL, "the programs are compiled already"},
    {"flash-attn", NULL, "attention never stores all scores"},
    {"attn-implementation", NULL, "there is one, which never stores all scores"},
    {"flash-attention", NULL, "attention never stores all scores"},
    {"use-liger-kernel", NULL, "the loss never stores all logits"},
    {"use-flash-attention-2", NULL, "attention never stores all scores"},
    {"deepspeed", NULL, "there is one process so far"},
    {"fsdp", NULL, "there is one process so far"},
    {"max-tokens", "max-new-tokens", NULL},
    {"n-predict", "max-new-tokens", NULL},
    {"temp", "temperature", NULL},
    {"do-sample", "temperature", "(0 is greedy)"},
    {"num-beams", NULL, "tokens are chosen one after the other, without beams"},
    {"repeat-penalty", "repetition-penalty", NULL},
    {"ctx-size", "context", NULL},
    {"n-ctx", "context", NULL},
    {"reverse-prompt", "stop", NULL},
    {"stop-strings", "stop", NULL},
    {"system-prompt", "system", NULL},
    {"interactive", "chat", NULL},
    {"conversation", "chat", NULL},
    {"lora", "adapter", NULL},
    {"adapter-path", "adapter", NULL},
    {"adapter-name-or-path", "adapter", NULL},
    {"push-to-hub", NULL, "checkpoints are folders that the Hub's client uploads"},
};

const char *tune_flags_foreign(const struct tune_flags_state *state, const char *name, char *text, size_t size)
{
    int distance;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct foreign *f = &table[i];
        tune_nearest(name, &f->name, 1, &distance); /* 0: equal but for '-' and '_' */
        if (distance != 0)
            continue;
        if (!f->option)
            snprintf(text, size, "; there is none here: %s", f->say);
        else if (tune_flags_row(state, f->option, strlen(f->option)) >= 0)
            snprintf(text, size, "; here it is --%s%s%s", f->option, f->say ? " " : "", f->say ? f->say : "");
        else
            snprintf(text, size, "; other recipes have it as --%s%s%s", f->option, f->say ? " " : "", f->say ? f->say : "");
        return text;
    }
    return NULL;
}
