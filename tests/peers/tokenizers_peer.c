/* tokenizers_peer.c - offsets and streamed texts for tokenizers_peer.py.
 *
 *     tokenizers_peer FOLDER offsets <lines     {"text": ..}  to  [start,end, start,end, ...] in bytes; -1 of the template's
 *     tokenizers_peer FOLDER stream <lines      {"ids": [..]} to  "the pieces, one after the other", U+0001 for a NUL */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "generators/detokenizer.h"
#include "tokenizers/tokenizer.h"

static int print_offsets(struct tune_tokenizer *t, const cJSON *row)
{
    struct tune_encoding e = {0};
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "text"));
    if (!text || tune_tokenizer_encode(t, text, strlen(text), TUNE_ADD_SPECIAL, &e) < 0)
        return -1;
    putchar('[');
    for (int64_t i = 0; i < e.count; i++)
        printf("%s%lld,%lld", i ? "," : "", (long long)e.starts[i], (long long)e.ends[i]);
    puts("]");
    tune_encoding_free(&e);
    return 0;
}

static int print_stream(struct tune_detokenizer *s, const cJSON *row)
{
    const cJSON *id;
    const char *piece;
    char *text = NULL;
    size_t size, n;
    FILE *to = open_memstream(&text, &n);
    tune_detokenizer_reset(s);
    cJSON_ArrayForEach(id, cJSON_GetObjectItemCaseSensitive(row, "ids")) {
        if (tune_detokenizer_add(s, id->valueint, &piece, &size) < 0)
            return -1;
        fwrite(piece, 1, size, to);
    }
    if (tune_detokenizer_end(s, &piece, &size) < 0)
        return -1;
    fwrite(piece, 1, size, to);
    fclose(to);
    for (size_t i = 0; i < n; i++) /* a string of cJSON has no NUL */
        if (!text[i])
            text[i] = '\x01';
    cJSON *said = cJSON_CreateString(text);
    char *line = cJSON_PrintUnformatted(said);
    puts(line);
    cJSON_free(line);
    cJSON_Delete(said);
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t room = 0;
    struct tune_tokenizer *t = argc == 3 ? tune_tokenizer_open(argv[1]) : NULL;
    struct tune_detokenizer *s = t ? tune_detokenizer_new(t, NULL, 0) : NULL;
    int status = s ? 0 : -1;
    while (status == 0 && getline(&line, &room, stdin) > 0) {
        cJSON *row = cJSON_Parse(line);
        status = !row ? -1 : strcmp(argv[2], "stream") == 0 ? print_stream(s, row) : print_offsets(t, row);
        cJSON_Delete(row);
    }
    free(line);
    tune_detokenizer_free(s);
    tune_tokenizer_free(t);
    if (status < 0)
        fprintf(stderr, "tokenizers_peer: %s\n", tune_error_message());
    return status < 0;
}
