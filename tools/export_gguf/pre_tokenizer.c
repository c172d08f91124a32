/* pre_tokenizer.c - the name that llama.cpp has for how a tokenizer splits text into words. Its
 * converters find it by the ids of a fixed text: the SHA-256 of the list of ids, as Python prints a
 * list. The text and the hashes here are theirs. Source: conversion/base.py of llama.cpp, 2026. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/sha256.h"
#include "core/try.h"
#include "export.h"
#include "tokenizers/tokenizer.h"

static const char check_text[] =
    "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n     \n\360\237\232\200 (normal) \360\237\230\266"
    "\342\200\215\360\237\214\253\357\270\217 (multiple emojis concatenated) \342\234\205 "
    "\360\237\246\231\360\237\246\231 3 33 333 3333 33333 333333 3333333 33333333 3.3 3..3 3...3 "
    "\341\236\200\341\236\266\341\236\223\341\237\213\341\236\217\341\237\202\341\236\226\341\236"
    "\267"
    "\341\236\237\341\237\201\341\236\237\341\236\242\341\236\266\341\236\205\360\237\230\201 ?"
    "\346\210\221\346\203\263\345\234\250apple\345\267\245\344\275\2341314151\345\244\251\357\275"
    "\236"
    " ------======= \320\275\320\265\321\211\320\276 \320\275\320\260 \320\221\321\212\320\273"
    "\320\263\320\260\321\200\321\201\320\272\320\270 ''''''```````\"\"\"\"......!!!!!!?"
    "??"
    "??"
    "? I've be"
    "en 'told he's there, 'RE you sure? 'M not sure I'll make it, 'D you like some tea? We'Ve a'lL";

static const struct {
    const char *hash, *name;
} known[] = {
    {"0fe1cf6eda062318a1af7270f3331a85c539a01778ff948e24388e949c5282f4", "gpt-2"},
    {"3ce83efda5659b07b1ad37ca97ca5797ea4285d9b9ab0dc679e4a720c9da7454", "gpt-2"},
    {"fcace8b9cac38ce847670c970cd5892031a753a1ef381abd1d9af00f713da085", "phi-2"},
    {"35d91631860c815f952d711435f48d356ebac988362536bed955d43bfa436e34", "starcoder"},
    {"6221ad2852e85ce96f791f476e0b390cf9b474c9e3d1362f53a24a06dc8220ff", "refact"},
    {"855059429035d75a914d1eda9f10a876752e281a054a7a3d421ef0533e5b6249", "smollm"},
    {"9c2227e4dd922002fb81bde4fc02b0483ca4f12911410dee2255e4987644e3f8", "command-r"},
    {"7b3e7548e4308f52a76e8229e4e6cc831195d0d1df43aed21ac6c93da05fec5f", "codeshell"},
    {"4e2b24cc4770243d65a2c9ec19770a72f08cffc161adbb73fcbb6b7dd45a0aae", "exaone"},
    {"53e325976a6e142379c19b09afcae354f2f496f147afa8f9e189a33fe4e3024e", "granite-docling"},
    {"b6dc8df998e1cfbdc4eac8243701a65afe638679230920b50d6f17d81c098166", "olmo"},
    {"0ef9807a4087ebef797fc749390439009c3b9eda9ad1a097abbe738f486c01e5", "llama-bpe"},
    {"9d032fcbd5501f4a38150912590928bfb36091efb5df11b8e2124b0390e3fb1e", "falcon3"},
    {"c136ed14d01c2745d4f60a9596ae66800e2b61fa45643e72436041855ad4089d", "smaug-bpe"},
    {"a8594e3edff7c29c003940395316294b2c623e09894deebbc65f33f1515df79e", "dbrx"},
    {"0e9433cbbb161f89e264eb32e8e64bfe69e834973ffca5d41d3948a604a3e2a3", "pixtral"},
    {"9e454714343b69b99b71795c1d27a68c2a1d15dab111f4d353109f966af29da7", "lfm2"},
    {"169bf0296a13c4d9b7672313f749eb36501d931022de052aad6e36f2bf34dd51", "lfm2"},
    {"d4540891389ea895b53b399da6ac824becc30f2fba0e9ddbb98f92e55ca0e97c", "qwen2"},
    {"e636dc30a262dcc0d8c323492e32ae2b70728f4df7dfe9737d9f920a282b8aea", "qwen2"},
    {"1444df51289cfa8063b96f0e62b1125440111bc79a52003ea14b6eac7016fd5f", "qwen35"},
    {"d30d75d9059f1aa2c19359de71047b3ae408c70875e8a3ccf8c5fba56c9d8af4", "qwen35"},
    {"b3f499bb4255f8ca19fccd664443283318f2fd2414d5e0b040fbdd0cc195d6c5", "deepseek-r1-qwen"},
    {"d4c8f286ea6b520b3d495c4455483cfa2302c0cfcd4be05d781b6a8a0a7cdaf1", "megrez"},
    {"63b97e4253352e6f357cc59ea5b583e3a680eaeaf2632188c2b952de2588485e", "tekken"},
    {"ccc2ef013c104be7bae2965776d611e1d7a8a2a9c547dd93a682c9a9fc80352e", "gpt-4o"},
    {"d353350c764d8c3b39c763113960e4fb4919bea5fbf208a0e3b22e8469dc7406", "llama4"},
    {"7dec86086fcc38b66b7bc1575a160ae21cf705be7718b9d5598190d7c12db76f", "superbpe"},
    {"a1e163ecab2e718a4c829d1148b6e86824ec36163bb71941c3dca9cd5ac25756", "mellum"},
    {"32d85c31273f8019248f2559fed492d929ea28b17e51d81d3bb36fff23ca72b3", "stablelm2"},
};

/* llama.cpp's name of a pipeline's pattern. */
static const char *name_of_pipeline(const char *pipeline)
{
    static const char *const names[][2] = {
        {"gpt2", "gpt-2"},  {"smollm", "smollm"}, {"llama3", "llama-bpe"}, {"llama4", "llama4"},
        {"qwen2", "qwen2"}, {"qwen35", "qwen35"}, {"tekken", "tekken"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(pipeline, names[i][0]) == 0)
            return names[i][1];
    return "default";
}

/* The hash of the check text's ids. */
static int hash_ids(struct tune_tokenizer *t, char hash[TUNE_SHA256_TEXT])
{
    struct tune_encoding ids = {0};
    char *text = NULL;
    size_t size;
    int status =
        tune_tokenizer_encode(t, check_text, sizeof check_text - 1, TUNE_ADD_SPECIAL, &ids);
    FILE *list = status == 0 ? open_memstream(&text, &size) : NULL;
    for (int64_t i = 0; list && i < ids.count; i++)
        fprintf(list, "%s%d", i ? ", " : "[", (int)ids.ids[i]);
    if (list) {
        fputs(ids.count ? "]" : "[]", list);
        fclose(list);
        tune_sha256(text, size, hash);
    }
    if (status == 0 && !list)
        status = tune_error_no_memory("a list of ids");
    free(text);
    tune_encoding_free(&ids);
    return status;
}

int export_pre_tokenizer(struct export *e, struct tune_tokenizer *t, const char **name)
{
    char hash[TUNE_SHA256_TEXT];
    *name = e->pre;
    if (e->pre)
        return 0;
    TRY(hash_ids(t, hash));
    for (size_t i = 0; i < sizeof known / sizeof *known && !*name; i++)
        if (strcmp(hash, known[i].hash) == 0)
            *name = known[i].name;
    if (*name)
        return 0;
    return tune_error_usage("%s: the tokenizer is none that llama.cpp knows: the ids of its check "
                            "text have the SHA-256 %s. Its words are split "
                            "by the pattern \"%s\", which llama.cpp calls \"%s\"; if its "
                            "vocabulary alone is another, give --pre %s",
                            e->m.folder, hash, tune_tokenizer_pipeline(t),
                            name_of_pipeline(tune_tokenizer_pipeline(t)),
                            name_of_pipeline(tune_tokenizer_pipeline(t)));
}
