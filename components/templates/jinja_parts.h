/* jinja_parts.h - declarations shared by the interpreter's files. Private.
 *
 *     template -> jinja_lexer.c (tokens) -> jinja_parser.c, jinja_operators.c (tree)
 *              -> jinja.c (statements), jinja_expression.c
 *     jinja_value.c (values, memory), jinja_json.c, jinja_text.c (methods), jinja_filters.c,
 *     jinja_functions.c (tests, functions)
 *
 * A template and a render each have an arena, which is freed as a whole. Values have no owner. */
#ifndef TUNE_JINJA_PARTS_H
#define TUNE_JINJA_PARTS_H

#include <string.h>

#include "files/json.h"
#include "core/try.h"
#include "core/operators.h"
#include "templates/jinja.h"

struct tune_jinja_block;
struct tune_jinja_memory {
    struct tune_jinja_block *blocks;
    size_t used, limit;
    char *at, *end;
};
void *tune_jinja_take(struct tune_jinja_memory *m, size_t size); /* zeroed; NULL with an error */
void tune_jinja_release(struct tune_jinja_memory *m);

/* ---- tokens ---- */
enum { JINJA_DATA, JINJA_BLOCK, JINJA_BLOCK_END, JINJA_PRINT, JINJA_PRINT_END, JINJA_NAME,
    JINJA_STRING, JINJA_WHOLE, JINJA_NUMBER, JINJA_OPERATOR, JINJA_EOF };
struct tune_jinja_token {
    int kind, line;
    struct tune_text text;
    enum tune_operator op;
    int64_t whole;  /* a bracket or another sign: its character */
    double number;
};
/* A text in a message: for %.*s */
#define JINJA_SHOWN(t) (int)((t).size > 60 ? 60 : (t).size), (t).data

struct tune_jinja {
    struct tune_jinja_memory memory;
    const char *name;
    bool plain;             /* tune_jinja_open_plain */
    struct tune_jinja_token *tokens;
    size_t count;
    struct tune_jinja_node *body, *macros; /* macros: list linked by filter */
};
int tune_jinja_lex(struct tune_jinja *t, const char *text, size_t size);
int tune_jinja_parse(struct tune_jinja *t);
int tune_jinja_refuse(const struct tune_jinja *t, int line, const char *format, ...) TUNE_PRINTF(3,
                      4);

/* ---- values ---- */
enum { JINJA_UNDEFINED, JINJA_NONE, JINJA_BOOL, JINJA_INT, JINJA_FLOAT, JINJA_TEXT, JINJA_LIST,
    JINJA_DICT, JINJA_NAMESPACE, JINJA_MACRO, JINJA_LOOP, JINJA_METHOD };

typedef struct tune_jinja_value {
    uint8_t type;
    uint8_t mark;          /* text: mark of all bytes, if marks is NULL */
    bool tuple;            /* list: prints as a tuple, and equals no list */
    uint8_t view;          /* list: JINJA_VIEW, ...; 0: a Python list */
    bool safe; /* text: went through the filter safe; Jinja then escapes text joined to it */
    size_t size;           /* text: bytes of UTF-8; undefined: size of the name */
    const uint8_t *marks;  /* text: [size], or NULL */
    union {
        bool truth;
        int64_t whole;
        double number;
        const char *text;  /* text; undefined: the undefined name */
        struct tune_jinja_list *list;
        struct tune_jinja_dict *dict; /* for a mapping or a namespace */
        const struct tune_jinja_macro *macro;
        const struct tune_jinja_loop *loop;
    };
} jval;

/* Iterables that are no Python lists. VIEW: keys(), values() or items() of a mapping. ONCE: a
 * filter's result, which can be iterated once and counts as true. RANGE: a range. */
enum { JINJA_VIEW = 1, JINJA_ONCE, JINJA_RANGE };
struct tune_jinja_list {
    size_t count, room;
    bool spent;            /* JINJA_ONCE: already iterated */
    jval *items;
};
struct tune_jinja_dict {
    size_t count, room;
    jval *keys, *values;   /* in insertion order; keys are texts and integers */
    struct tune_jinja_turn *turn; /* NULL: not recorded */
};
/* The range of output of a loop over messages, for the pass with this mapping. Only passes count
 * that wrote more than white space to the text itself. */
struct tune_jinja_turn {
    size_t begin, end;     /* range of the last such loop */
    int times;
};
struct tune_jinja_loop {
    const struct tune_jinja_list *list;
    size_t index;
};
struct tune_jinja_scope {
    struct tune_jinja_scope *above;
    struct tune_jinja_dict names;
};
struct tune_jinja_macro {
    const struct tune_jinja_node *node;
    struct tune_jinja_scope *scope;
};

/* ---- tree ---- */
enum { JINJA_N_CONST, JINJA_N_NAME, JINJA_N_LIST, JINJA_N_DICT, JINJA_N_ATTRIBUTE, JINJA_N_ITEM,
       JINJA_N_SLICE, JINJA_N_CALL, JINJA_N_FILTER, JINJA_N_TEST, JINJA_N_NOT, JINJA_N_NEGATE,
       JINJA_N_PLUS, JINJA_N_AND, JINJA_N_OR, JINJA_N_IF_ELSE, JINJA_N_BINARY, JINJA_N_COMPARE,
       /* statements */
       JINJA_N_DATA, JINJA_N_PRINT, JINJA_N_FOR, JINJA_N_IF, JINJA_N_SET, JINJA_N_SET_BLOCK,
       JINJA_N_MACRO, JINJA_N_BREAK, JINJA_N_CONTINUE, JINJA_N_GENERATION };

struct tune_jinja_node {
    int kind, line;
    enum tune_operator op;
    bool tuple;
    /* operands; AND, OR, COMPARE: c the last of args. FOR: a sequence, b body, c else, args:
     * targets; IF: a test, b then, c else */
    struct tune_jinja_node *a, *b, *c;
    struct tune_jinja_node *filter;      /* FOR: its if. SET_BLOCK: none */
    /* arguments, items (DICT: alternating key, value), statements */
    struct tune_jinja_node *args, *next;
    struct tune_text name;               /* name, attribute; key: name of a named argument */
    struct tune_text key;
    /* FILTER, TEST; CALL by name: the function, unless a variable has the name */
    const struct tune_jinja_name *known;
    jval value;
};

/* ---- a render ---- */
struct tune_jinja_buffer {
    char *text;
    uint8_t *marks;
    size_t size, room;
};
typedef struct tune_jinja_run {
    const struct tune_jinja *t;
    struct tune_jinja_memory memory;
    /* out: text, or the buffer of a block that becomes a value */
    struct tune_jinja_buffer text, *out;
    struct tune_jinja_scope *scope;
    struct tune_jinja_scope globals;
    int64_t steps, seconds;
    int depth, line;
    uint8_t mark;          /* mark of strings in JSON being read */
} jrun;

/* sets the error "name:line: ..."; returns -1 */
int tune_jinja_fail(jrun *run, const char *format, ...) TUNE_PRINTF(2, 3);
int tune_jinja_step(jrun *run, size_t cost);

/* jinja_value.c */
int tune_jinja_copy_text(jrun *run, const char *text, size_t size, uint8_t mark, jval *v);
int tune_jinja_list_new(jrun *run, size_t room, bool tuple, jval *v);
int tune_jinja_list_add(jrun *run, jval *list, jval item);
int tune_jinja_dict_new(jrun *run, jval *v);
int tune_jinja_dict_put(jrun *run, struct tune_jinja_dict *d, jval key, jval value);
const jval *tune_jinja_dict_find(jrun *run, const struct tune_jinja_dict *d, struct tune_text key);
/* key: a text or a number */
const jval *tune_jinja_dict_at(jrun *run, const struct tune_jinja_dict *d, const jval *key);
int tune_jinja_put(jrun *run, struct tune_jinja_buffer *b, const char *text, const uint8_t *marks,
                   uint8_t mark, size_t size);
int tune_jinja_put_value(jrun *run, struct tune_jinja_buffer *b, const jval *v); /* str(v) */
int tune_jinja_repr(jrun *run, struct tune_jinja_buffer *b, const jval *v, int depth);
int tune_jinja_string(jrun *run, const jval *v, jval *text); /* str(v) as a value */
/* the buffer's content as a value, which takes it over */
jval tune_jinja_take_buffer(const struct tune_jinja_buffer *b);
const char *tune_jinja_type_name(const jval *v);
bool tune_jinja_truth(const jval *v);
int tune_jinja_equal(jrun *run, const jval *a, const jval *b, int depth, bool *equal);
/* -1, 0, 1; 2: a NaN */
int tune_jinja_order(jrun *run, const jval *a, const jval *b, int depth, int *order);
bool tune_jinja_as_number(const jval *v, struct tune_number *number);
/* any iterable as a list */
int tune_jinja_iterate(jrun *run, const jval *v, jval *list);
int tune_jinja_contains(jrun *run, const jval *in, const jval *v, bool *found);

static inline jval tune_jinja_bool(bool b)
{
    return (jval){.type = JINJA_BOOL, .truth = b};
}
static inline jval tune_jinja_int(int64_t i)
{
    return (jval){.type = JINJA_INT, .whole = i};
}
static inline jval tune_jinja_undefined(const char *what, size_t size)
{
    return (jval){.type = JINJA_UNDEFINED, .text = what, .size = size};
}
static inline jval tune_jinja_word(const char *text) /* text of the template, borrowed */
{
    return (jval){.type = JINJA_TEXT, .text = text, .size = strlen(text)};
}
static inline jval tune_jinja_part(const jval *v, size_t begin, size_t end)
{
    return (jval){.type = JINJA_TEXT, .mark = v->mark, .text = v->text + begin, .size = end - begin,
                  .marks = v->marks ? v->marks + begin : NULL};
}
static inline bool tune_jinja_is(const jval *v, const char *text)
{
    return v->type == JINJA_TEXT && v->size == strlen(text) && memcmp(v->text, text, v->size) == 0;
}

/* ---- filters, tests, methods, functions ---- */
struct tune_jinja_args { /* Arguments of a call: positional ones, then named ones. */
    jval *values;
    struct tune_text *names; /* data NULL: positional */
    int count;
    const jval *at[4];       /* by parameter; NULL: not given */
};
struct tune_jinja_name {
    const char *name;        /* NULL: end of the table */
    int least, most;         /* least and largest number of arguments */
    const char *names;       /* parameters that may be given by name, in order; NULL: any */
    int (*run)(jrun *run, const struct tune_jinja_name *what, const jval *of,
               const struct tune_jinja_args *args, jval *v);
    int how;                 /* variant, if one function runs several */
};
#define JINJA_RUN(f) \
    static int f(jrun *run, const struct tune_jinja_name *what, const jval *of, \
                 const struct tune_jinja_args *args, jval *v)

enum { JINJA_FILTER, JINJA_TEST, JINJA_TEXT_METHOD, JINJA_DICT_METHOD, JINJA_FUNCTION,
    JINJA_LIST_METHOD };
extern const struct tune_jinja_name tune_jinja_filters[], tune_jinja_tests[],
    tune_jinja_text_methods[], tune_jinja_dict_methods[], tune_jinja_functions[],
    tune_jinja_list_methods[];
const struct tune_jinja_name *tune_jinja_known(int kind, struct tune_text name); /* NULL: none */
int tune_jinja_apply(jrun *run, const struct tune_jinja_name *what, const jval *of,
                     const struct tune_jinja_args *args, jval *v);

/* jinja_expression.c */
int tune_jinja_eval(jrun *run, const struct tune_jinja_node *n, jval *v);
int tune_jinja_item(jrun *run, const jval *of, const jval *key, jval *v);
/* true for methods that change their object, which the sandbox leaves undefined */
bool tune_jinja_changes(struct tune_text name);
int tune_jinja_binary(jrun *run, enum tune_operator op, const jval *a, const jval *b, jval *v);
int tune_jinja_compare(jrun *run, enum tune_operator op, const jval *a, const jval *b, bool *holds);

/* jinja.c */
int tune_jinja_call_macro(jrun *run, const struct tune_jinja_macro *macro,
                          const struct tune_jinja_args *args, jval *v);

/* jinja_text.c. White space is defined as in str.isspace(). */
bool tune_jinja_is_space(uint32_t c);
size_t tune_jinja_length(const jval *text); /* in characters */
size_t tune_jinja_offset(const jval *text, size_t characters);
int tune_jinja_strip(jrun *run, const jval *text, const jval *set, bool left, bool right, jval *v);
int tune_jinja_replace(jrun *run, const jval *text, const jval *old, const jval *new_, int64_t most,
                       jval *v);
/* 'u'pper, 'l'ower, 'c'apitalize, 't'itle, 'w': first letter of words */
int tune_jinja_case(jrun *run, const jval *text, char how, jval *v);
int tune_jinja_lines(jrun *run, const jval *text, bool keep_ends, jval *list);
/* 'k'eys, 'v'alues, 'i'tems */
int tune_jinja_entries(jrun *run, const jval *dict, char how, jval *v);
/* read an integer argument; v NULL: otherwise */
int tune_jinja_whole(jrun *run, const jval *v, int64_t otherwise, int64_t *whole);

/* jinja_json.c */
int tune_jinja_read_json(jrun *run, struct tune_json *j, int depth, jval *v);
int tune_jinja_to_json(jrun *run, const struct tune_jinja_name *what, const jval *of,
                       const struct tune_jinja_args *args, jval *v);

#endif
