/* secrets.h - values that no answer may show: those of options and environment variables whose
 * names look secret. */
#ifndef TUNE_STUDIO_SECRETS_H
#define TUNE_STUDIO_SECRETS_H

#include "studio.h"

struct cJSON;

/* studio_is_secret - whether a name looks like that of a secret. One of its words is password,
 * passwd, secret or credentials, or the last one is token or key (HF_TOKEN, hub-token, apiKey).
 * Tokens of a tokenizer (pad_token) and words such as max_tokens are none.
 * studio_shown - the value to show for that name: the value, or "(hidden)". NULL stays NULL.
 * studio_hide - replace the secret texts of a tree: members with such names, --hub-token VALUE and
 * --hub-token=VALUE in lists, and NAME=VALUE. Call it for what comes from files of runs.
 * studio_find_secrets - keep the environment's secret values in s->secrets, at the start, also as
 * JSON and XML spell them. Values of less than 8 bytes are left out: they would hide parts of other
 * words. -1 with an error: no memory. studio_forget_secrets frees them.
 * studio_longest_secret - bytes of the longest; 0: there are none.
 * studio_scrub - put asterisks in the place of each secret value in an answer. studio_answer does
 * so with every one. */
bool studio_is_secret(const char *name);
const char *studio_shown(const char *name, const char *value);
void studio_hide(struct cJSON *json);
int studio_find_secrets(struct studio *s);
void studio_forget_secrets(struct studio *s);
size_t studio_longest_secret(const struct studio *s);
void studio_scrub(const struct studio *s, char *data, size_t size);

#endif
