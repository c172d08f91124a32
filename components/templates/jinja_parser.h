/* jinja_parser.h - shared by the parsers of statements (jinja_parser.c) and expressions
 * (jinja_operators.c). */
#ifndef TUNE_JINJA_PARSER_H
#define TUNE_JINJA_PARSER_H

#include "templates/jinja_parts.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tune_jinja_node node;

struct tune_jinja_parser {
    struct tune_expression_parser core; /* must be the first member: expression.h passes this
                                         * pointer back */
    struct tune_jinja *t;
    const struct tune_jinja_token *at;
    int depth, loops, macros;
    bool macro, failed;
    node *calls;  /* list of calls by name, linked by c, the last one first */
    node spare;   /* returned after an error */
};

/* Set an error; return the spare node. */
node *tune_jinja_stop(struct tune_jinja_parser *p, int line, const char *format, ...) TUNE_PRINTF(3,
                      4);
node *tune_jinja_expected(struct tune_jinja_parser *p, const char *what);
node *tune_jinja_unknown(struct tune_jinja_parser *p, int line, const char *kind,
                         struct tune_text name);

node *tune_jinja_make(struct tune_jinja_parser *p, int kind, int line);
bool tune_jinja_deeper(struct tune_jinja_parser *p);

bool tune_jinja_at_name(const struct tune_jinja_parser *p, const char *name);
bool tune_jinja_at_op(const struct tune_jinja_parser *p, int64_t op);
bool tune_jinja_skip_name(struct tune_jinja_parser *p, const char *name);
bool tune_jinja_skip_op(struct tune_jinja_parser *p, int64_t op);
void tune_jinja_need_op(struct tune_jinja_parser *p, int64_t op, const char *what);

bool tune_jinja_constant(struct tune_text name, jval *v); /* true, false, none */
void tune_jinja_operators(struct tune_jinja_parser *p); /* fill p->core */
node *tune_jinja_expression(struct tune_jinja_parser *p);
/* Parse an expression, or several between commas, which are a tuple. conditional: allow a if b else
 * c. */
node *tune_jinja_tuple(struct tune_jinja_parser *p, bool conditional, bool parenthesis);

#ifdef __cplusplus
}
#endif
#endif
