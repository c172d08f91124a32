/* reasons.c - why rows of a file cannot be read. */
#include "datasets/reasons.h"

#include "core/error.h"
#include "core/print.h"

enum { KEPT = 3 };

void tune_reasons_add(struct tune_reasons *r)
{
    if (r->count++ < KEPT)
        tune_append(r->text, sizeof r->text, "%s%.200s", *r->text ? "; " : "", tune_error_message());
    tune_error_clear();
}

int tune_reasons_refuse(const struct tune_reasons *r, const char *path, int64_t of)
{
    const char *rest = r->count > KEPT ? "; ..." : "";
    if (r->count == of)
        return tune_error_set("%s: not one of its %lld rows can be read: %s%s", path, (long long)of, r->text, rest);
    return tune_error_set("%s: not one of the first %lld of %lld rows can be read: %s%s", path, (long long)r->count,
                          (long long)of, r->text, rest);
}
