/* lora_expression.c - targets of adapters by a regular expression, as PEFT has them: re.fullmatch on
 * the module's name. It is translated into POSIX's extended syntax. */
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "models/lora_parts.h"

enum { ROOM = 1024 }; /* bytes of a translated expression */

bool tune_lora_is_expression(const char *targets)
{
    return targets && strpbrk(targets, "()[]{}|*+?^$\\") != NULL;
}

static int refuse(const char *expression, const char *why)
{
    return tune_error_usage("LoRA's targets: the regular expression \"%.200s\": %s", expression, why);
}

/* Translate what follows a backslash at *p. Within brackets, POSIX knows no backslash. */
static int escaped(const char *expression, const char **p, bool brackets, FILE *out)
{
    char c = *++*p;
    switch (c) {
    case 'd': return fputs(brackets ? "0-9" : "[0-9]", out) < 0 ? -1 : 0;
    case 'w': return fputs(brackets ? "A-Za-z0-9_" : "[A-Za-z0-9_]", out) < 0 ? -1 : 0;
    case '.': case '_': case '-': case '*': case '+': case '?': case '(': case ')': case '|': case '{': case '}': case '$': case '/':
        return fprintf(out, brackets || c == '_' || c == '-' || c == '/' ? "%c" : "\\%c", c) < 0 ? -1 : 0;
    default: return refuse(expression, "of what follows a backslash, \\d, \\w and signs such as \\. are supported");
    }
}

/* Copy the brackets at *p, up to the last one. */
static int bracketed(const char *expression, const char **p, FILE *out)
{
    const char *begin = *p;
    fputc('[', out);
    if (*++*p == '^')
        fputc(*(*p)++, out);
    for (const char *first = *p; **p && (**p != ']' || *p == first); ++*p) {
        if (**p == '\\')
            TRY(escaped(expression, p, true, out));
        else if (**p == '[')
            return refuse(expression, "a '[' within brackets is not supported");
        else
            fputc(**p, out);
    }
    if (!**p)
        return refuse(expression, begin[1] ? "a '[' is not closed" : "it ends with '['");
    fputc(']', out);
    return 0;
}

static int translate(const char *expression, FILE *out)
{
    fputs("^(", out);
    for (const char *p = expression; *p; p++) {
        if (*p == '\\') {
            TRY(escaped(expression, &p, false, out));
        } else if (*p == '[') {
            TRY(bracketed(expression, &p, out));
        } else if (*p == '(' && p[1] == '?') {
            if (p[2] != ':')
                return refuse(expression, "of groups, (...) and (?:...) are supported");
            fputc('(', out);
            p += 2;
        } else if (*p == '?' && p > expression && strchr("*+?}", p[-1])) {
            continue; /* a lazy quantifier: a match of the whole name is the same */
        } else {
            fputc(*p, out);
        }
    }
    fputs(")$", out);
    return 0;
}

static int compile(const char *expression, regex_t *regex)
{
    char text[ROOM] = "", why[200];
    FILE *out = fmemopen(text, sizeof text, "w");
    if (!out)
        return tune_error_no_memory("a regular expression");
    int status = translate(expression, out);
    bool whole = fflush(out) == 0;
    fclose(out);
    TRY(status);
    if (!whole)
        return refuse(expression, "it is too long");
    int code = regcomp(regex, text, REG_EXTENDED | REG_NOSUB);
    if (code == 0)
        return 0;
    regerror(code, regex, why, sizeof why);
    return refuse(expression, why);
}

int tune_lora_expression_check(const char *expression)
{
    regex_t regex;
    TRY(compile(expression, &regex));
    regfree(&regex);
    return 0;
}

bool tune_lora_expression_fits(const char *expression, const char *module)
{
    regex_t regex;
    if (compile(expression, &regex) < 0) {
        tune_error_clear(); /* tune_lora_check told of it */
        return false;
    }
    bool fits = regexec(&regex, module, 0, NULL, 0) == 0;
    regfree(&regex);
    return fits;
}
