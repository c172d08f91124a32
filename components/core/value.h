/* value.h - a value as a file or an expression gives it: None, boolean, integer, float, text, list.
 *
 * Equality and spelling are those of Python, because the ids and space files of ado depend on them.
 * True == 1 == 1.0, str(1e16) is "1e+16", and a list shows its texts in quotes. A value borrows its
 * texts and items, from a document, a space or an arena. */
#ifndef TUNE_CORE_VALUE_H
#define TUNE_CORE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/operators.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_value_type {
    TUNE_VALUE_NONE, TUNE_VALUE_BOOL, TUNE_VALUE_INT, TUNE_VALUE_FLOAT, TUNE_VALUE_TEXT,
    TUNE_VALUE_LIST
};

struct tune_value {
    enum tune_value_type type;
    union {
        bool boolean;
        int64_t integer;  /* Python's integers have no limit; here a larger one is a read error */
        double number;
        const char *text; /* UTF-8, no NUL within */
        struct {
            const struct tune_value *items;
            int count;
        } list;
    };
};

/* tune_value_none, _bool, _int, _float, tune_value_text - a value of that type. A text is
 * borrowed. */
struct tune_value tune_value_none(void);
struct tune_value tune_value_bool(bool boolean);
struct tune_value tune_value_int(int64_t integer);
struct tune_value tune_value_float(double number);
struct tune_value tune_value_text(const char *text);

/* tune_value_equal - Python's ==. Numbers are equal by exact value, whatever their type: 2^53+1 is
 * not 2^53 as a float. Lists compare item by item.
 * tune_value_compare - an order for sorting: None, numbers, texts by bytes, lists. */
bool tune_value_equal(const struct tune_value *a, const struct tune_value *b);
int tune_value_compare(const struct tune_value *a, const struct tune_value *b);

/* tune_value_read_as - the number, boolean or None that a program may take a text for ("1", "1e3",
 * "true"). false: none.
 * tune_value_conflicts - whether one is a text, the other is not, and a program cannot tell them
 * apart: "1" and 1, 1.0 or True. */
bool tune_value_read_as(const char *text, struct tune_value *value);
bool tune_value_conflicts(const struct tune_value *a, const struct tune_value *b);

/* tune_value_number - true and *number if the value is a boolean, an int or a float.
 * tune_value_as_number - the same, exact. */
bool tune_value_number(const struct tune_value *v, double *number);
static inline bool tune_value_as_number(const struct tune_value *v, struct tune_number *number)
{
    switch (v->type) {
    case TUNE_VALUE_BOOL: *number = tune_number_whole(v->boolean); return true;
    case TUNE_VALUE_INT: *number = tune_number_whole(v->integer); return true;
    case TUNE_VALUE_FLOAT: *number = tune_number_float(v->number); return true;
    default: return false;
    }
}

/* tune_values_size - bytes that a copy of the values takes, with the items of lists and the texts
 * of values that are texts.
 * tune_values_copy - the copy, into `to`, which is returned; NULL stays NULL. Texts within lists
 * stay borrowed. */
size_t tune_values_size(const struct tune_value *values, int count);
struct tune_value *tune_values_copy(void *to, const struct tune_value *values, int count);

/* tune_value_str - str(v) into text[size], cut to size; returns the whole length, like snprintf.
 * Booleans are True and False.
 * tune_value_to_string - the same in memory that the caller frees; NULL: no memory.
 * tune_value_repr - repr(v): texts in quotes, escaped as Python does.
 * tune_value_id - as in ids of entities: str(v), but booleans are 1 and 0.
 * tune_value_json - as JSON; an infinity or NaN is a string. */
int tune_value_str(const struct tune_value *v, char *text, size_t size);
char *tune_value_to_string(const struct tune_value *v);
int tune_value_repr(const struct tune_value *v, char *text, size_t size);
int tune_value_id(const struct tune_value *v, char *text, size_t size);
int tune_value_json(const struct tune_value *v, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
