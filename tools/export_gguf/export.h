/* export.h - what the parts of export_gguf share. */
#ifndef TUNE_TOOLS_EXPORT_GGUF_H
#define TUNE_TOOLS_EXPORT_GGUF_H

#include <stdio.h>

#include "adapters/merged.h"
#include "files/gguf.h"

/* Bits: llama.cpp's code of an architecture can do these things. */
enum {
    EXPORT_PAIRS = 1,     /* it rotates neighbours: rows of q and k are in another order */
    EXPORT_OUT_BIAS = 2,  /* attn_output may have a bias */
    EXPORT_MLP_BIAS = 4,  /* ffn_gate, ffn_up and ffn_down may */
    EXPORT_ANY_HEAD = 8,  /* heads times their width may differ from the width of the model */
    EXPORT_OUTPUT = 16,   /* it wants output.weight, tied or not */
    EXPORT_FREQS = 32,    /* it reads rope_freqs.weight */
    EXPORT_LONG = 64,     /* it reads rope_factors_long.weight and _short */
    EXPORT_WINDOW = 128   /* it has windows */
};
struct export_family {
    const char *type, *arch; /* model_type of config.json; general.architecture */
    unsigned can;
};

/* Types that the option names. */
enum export_type {
    EXPORT_AS_READ, EXPORT_F32, EXPORT_F16, EXPORT_BF16, EXPORT_Q8_0, EXPORT_Q4_0, EXPORT_Q5_0,
    EXPORT_Q5_1, EXPORT_Q6_K, EXPORT_Q4_K, EXPORT_Q4_K_M, EXPORT_Q5_K_M
};

/* A tensor to be written. */
struct export_tensor {
    char name[TUNE_GGUF_NAME];
    const struct tune_parameter *p; /* its numbers; NULL: values */
    const float *values;
    int64_t count;                  /* of values */
    enum tune_gguf_block block;
    enum tune_gguf_block asked;     /* what it would be if its rows were longer */
};

struct export {
    struct tune_merged_model m;
    const struct export_family *family;
    char name[256];      /* of the model, for general.name */
    const char *adapter; /* its folder; NULL: none */
    const char *pre;     /* of the option; NULL: by hash */
    enum export_type type;
    volatile int *stop;  /* not 0: a signal arrived */
    struct tune_gguf_writer *out;
    struct export_tensor *tensors;
    int count;
    float freqs[3][TUNE_ROPE_PAIRS]; /* values of rope tensors */
    FILE *notes;         /* lines about what was read, guessed or left out */
    char *notes_text;
    size_t notes_size;
    char **stops;        /* spellings of the tokens that end an answer, for the Modelfile */
    int stop_count;
};

/* A key "<arch>.<name>" for the file, in text. Returns text. */
enum { EXPORT_KEY = 128 };
const char *export_key(const struct export *e, const char *name, char text[EXPORT_KEY]);

/* names.c
 * export_family - find the family of a config. NULL with an error.
 * export_name - the tensor's name of a row; -1 with an error. */
const struct export_family *export_family(const struct tune_model_config *c);
int export_name(const struct tune_parameter *p, char name[TUNE_GGUF_NAME]);

/* keys.c
 * export_check - refuse what llama.cpp's code of the family would compute otherwise; note what it
 * leaves out.
 * export_general - the keys general.*.
 * export_keys - the family's keys. */
int export_check(struct export *e);
int export_keys(struct export *e);
int export_general(struct export *e, const char *type, int file_type);

/* vocabulary.c, template.c, pre_tokenizer.c
 * export_vocabulary - all keys: the general ones, the family's, the tokenizer's.
 * export_template - the chat template.
 * export_pre_tokenizer - the pre-tokenizer's name, by the hash of the ids of a fixed text. */
int export_vocabulary(struct export *e);
int export_template(struct export *e);
int export_pre_tokenizer(struct export *e, struct tune_tokenizer *t, const char **name);

/* tensors.c
 * export_plan - list the tensors and choose their types.
 * export_declare - declare them.
 * export_write - write their data.
 * export_blocks - write rows of numbers as blocks. name: for messages.
 * export_order - put rows of q or k into llama.cpp's order. */
int export_plan(struct export *e);
int export_declare(struct export *e);
int export_write(struct export *e);
int export_blocks(struct export *e, const char *name, enum tune_gguf_block block, const float *x,
                  int64_t rows, int64_t columns, void *room);
void export_order(const float *x, int64_t heads, int64_t dim, int64_t columns, float *to);
bool export_is_ordered(const struct export *e, const struct tune_parameter *p);
int export_file_type(const struct export *e);

/* adapter.c: the adapter alone. */
int export_adapter(struct export *e);

/* modelfile.c: Ollama's Modelfile beside the file. */
int export_modelfile(const struct export *e, const char *gguf, const char *path);

/* show.c: print the keys and tensors of a file. */
int export_show(const char *path);

#endif
