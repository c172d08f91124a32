/* test_yaml.c - YAML and JSON as trees: what scalars mean, where everything stands, and every complaint with its place. */
#include "test.h"

#include "files/document.h"
#include "hidden_library.h"

static struct tune_document *yaml(const char *text)
{
    return tune_document_parse("f.yaml", text, strlen(text), false);
}

static struct tune_document *json(const char *text)
{
    return tune_document_parse("f.json", text, strlen(text), true);
}

/* The tree on one line: texts and other scalars as repr(), maps as {key: item}. */
static char shown[1 << 16];
static size_t used;
static void show_node(const struct tune_node *n)
{
    if (n->type == TUNE_NODE_SCALAR) {
        used += (size_t)tune_value_repr(&n->value, shown + used, sizeof shown - used);
        return;
    }
    used += (size_t)sprintf(shown + used, n->type == TUNE_NODE_MAP ? "{" : "[");
    for (int i = 0; i < n->count; i++) {
        used += (size_t)sprintf(shown + used, "%s", i ? ", " : "");
        if (n->type == TUNE_NODE_MAP)
            used += (size_t)sprintf(shown + used, "%s: ", n->keys[i]->value.text);
        show_node(n->items[i]);
    }
    used += (size_t)sprintf(shown + used, n->type == TUNE_NODE_MAP ? "}" : "]");
}

static const char *show(struct tune_document *d)
{
    used = 0;
    *shown = 0;
    if (d)
        show_node(d->root);
    else
        snprintf(shown, sizeof shown, "%s", tune_error_message());
    tune_document_free(d);
    return shown;
}

struct row {
    const char *text, *tree;
};

static void check(const struct row *rows, size_t count, struct tune_document *(*parse)(const char *))
{
    for (size_t i = 0; i < count; i++) {
        tune_error_clear();
        const char *got = show(parse(rows[i].text));
        bool error = strncmp(rows[i].tree, "f.", 2) == 0;
        if (strcmp(got, rows[i].tree) != 0)
            fail_msg("%s\ngives    %s\nnot      %s", rows[i].text, got, rows[i].tree);
        assert_int_equal(tune_error_kind(), error ? TUNE_ERROR_USAGE : TUNE_ERROR_NONE);
    }
}
#define CHECK(rows, parse) check(rows, sizeof rows / sizeof *rows, parse)

#define SIXTIES ":1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1"
static void plain_scalars(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"[~, null, Null, NULL, nULL, '', \"~\"]", "[None, None, None, None, 'nULL', '', '~']"},
        {"a:\nb:   # nothing\n", "{a: None, b: None}"},
        {"[yes, Yes, YES, yEs, no, No, NO, on, On, ON, off, Off, OFF]",
         "[True, True, True, 'yEs', False, False, False, True, True, True, False, False, False]"},
        {"[true, True, TRUE, false, False, FALSE, tRUE, y, n, Y, N, 'yes']",
         "[True, True, True, False, False, False, 'tRUE', 'y', 'n', 'Y', 'N', 'yes']"},
        {"[0, -0, +0, 00, 7, +7, -7, 1_000, 1_, _1, 0_, 1__0]", "[0, 0, 0, 0, 7, 7, -7, 1000, 1, '_1', 0, 10]"},
        {"[010, -010, 0_1_7, 08, 019, 0o17, 0b101, -0b1_1, 0b, 0b2, 0xfF, -0x_1_f, 0x, 0X1, 0xg, 0b1b]",
         "[8, -8, 15, '08', '019', '0o17', 5, -3, '0b', '0b2', 255, -31, '0x', '0X1', '0xg', '0b1b']"},
        {"[1:30, 1:30:5, -1:30, 1:60, 1:5, 1:05, 01:30, 0:30, 1:3x, 1_0:30]",
         "[90, 5405, -90, '1:60', 65, 65, '01:30', '0:30', '1:3x', 630]"},
        {"[9223372036854775807, -9223372036854775808, 0x7fffffffffffffff, -0x8000000000000000]",
         "[9223372036854775807, -9223372036854775808, 9223372036854775807, -9223372036854775808]"},
        {"[1e5, 1.5e5, 1.5e+5, 1.5E-5, 1e+5, 310e50, 1., .5, -.5, +.5, 1.e+1, ._5, .5_0, 1_0.5_0, 08.5, 0.5e+1]",
         "['1e5', '1.5e5', 150000.0, 1.5e-05, '1e+5', '310e50', 1.0, 0.5, '-.5', '+.5', 10.0, '._5', 0.5, 10.5, 8.5, 5.0]"},
        {"[.inf, .Inf, .INF, -.inf, +.inf, .iNF, .nan, .NaN, .NAN, -.nan, inf, nan, Infinity]",
         "[inf, inf, inf, -inf, inf, '.iNF', nan, nan, nan, '-.nan', 'inf', 'nan', 'Infinity']"},
        {"[1:30.5, 0:30., -1:00.25, 1:60.5, 1:2.5e+1, 1.5:30]", "[90.5, 30.0, -60.25, '1:60.5', '1:2.5e+1', '1.5:30']"},
        {"[1.0.0, 2.8.2, 1-2, 1..2, '1', \"2\", 0.1.e, --1, +-1, +, '-', 1 2]",
         "['1.0.0', '2.8.2', '1-2', '1..2', '1', '2', '0.1.e', '--1', '+-1', '+', '-', '1 2']"},
        {"[2024-01-01, 2024-1-1, 2024-13-99, '2024-01-01 10:00:00', 2024-01-01 10:00, 2024-01-01T10:00:00x, 2024-01-01x10:00:00]",
         "['2024-01-01', '2024-1-1', '2024-13-99', '2024-01-01 10:00:00', '2024-01-01 10:00', '2024-01-01T10:00:00x', "
         "'2024-01-01x10:00:00']"},
        {"2024-01-01 10:00:00 +1:0", "'2024-01-01 10:00:00 +1:0'"},
        {"[2.2250738585072014e-308, 1.0e+400, 0.1, 123456789.123456789]",
         "[2.2250738585072014e-308, inf, 0.1, 123456789.12345679]"},
        {"[=, <, <<, '<<']", "['=', '<', '<<', '<<']"},
        {"# only a comment\n", "None"},
        {"", "None"},
        {"---\n", "None"},
        {"--- 5\n...\n", "5"},
        {"%YAML 1.1\n--- [1]\n", "[1]"},
        {"\xef\xbb\xbf" "a: 1\n", "{a: 1}"},
        {"a: 'x'\r\nb: |\r\n  two\r\n  lines\r\n", "{a: 'x', b: 'two\\nlines\\n'}"},
        {"a: >-\n  folded\n  text\nb: \"\\u00e9\\t\\x41\"\nc: plain\n  goes on\n",
         "{a: 'folded text', b: '\u00e9\\tA', c: 'plain goes on'}"},
        {"? a\n: 1\n? b\n", "{a: 1, b: None}"},
        {"- - 1\n  - {a: [], b: {}}\n-\n  k: v\n", "[[1, {a: [], b: {}}], {k: 'v'}]"},
    };
    CHECK(rows, yaml);
    static const struct row refused[] = {
        {"a: 9223372036854775808",
         "f.yaml:1:4: 9223372036854775808 is a whole number beyond 64 bits; if it is a text, put it in quotes"},
        {"- 0\n- -9223372036854775809",
         "f.yaml:2:3: -9223372036854775809 is a whole number beyond 64 bits; if it is a text, put it in quotes"},
        {"0x8000000000000000",
         "f.yaml:1:1: 0x8000000000000000 is a whole number beyond 64 bits; if it is a text, put it in quotes"},
        {"153722867280912930:08:00",
         "f.yaml:1:1: \"153722867280912930:08:00\" is a whole number beyond 64 bits; if it is a text, put it in quotes"},
        {"a: 1" SIXTIES SIXTIES SIXTIES SIXTIES ":0.5",
         "f.yaml:1:4: \"1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:\" has too many parts for a number; put it in quotes"},
        {"a: 0x_", "f.yaml:1:4: \"0x_\" looks like a number without digits; put it in quotes"},
        {"a: 2024-01-01 10:00:00", "f.yaml:1:4: \"2024-01-01 10:00:00\" would be a moment in time; put it in quotes"},
        {"a: 2001-12-14t21:59:43.10-05:00",
         "f.yaml:1:4: \"2001-12-14t21:59:43.10-05:00\" would be a moment in time; put it in quotes"},
        {"a: 2001-1-4 1:59:43.  Z", "f.yaml:1:4: \"2001-1-4 1:59:43.  Z\" would be a moment in time; put it in quotes"},
        {"a: 2001-1-4 1:59:43 +9", "f.yaml:1:4: \"2001-1-4 1:59:43 +9\" would be a moment in time; put it in quotes"},
    };
    CHECK(refused, yaml);
}

static void tags_and_anchors(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"[!!str 1, !!str yes, !!str, !!int '12', !!int \"0x1f\", !!bool 'Yes', !!null x, !!null '']",
         "['1', 'yes', '', 12, 31, True, None, None]"},
        {"[!!float 3, !!float 1e5, !!float '.inf', !!float -1_0.5e-1, !!float .5, !!float -.5, !!float 1:30.5, !!float 010]",
         "[3.0, 100000.0, inf, -1.05, 0.5, -0.5, 90.5, 10.0]"},
        {"!!map {a: !!seq [1]}", "{a: [1]}"},
        {"[! 5, ! '5', !<tag:yaml.org,2002:str> 5]", "[5, 5, '5']"},
        {"%TAG !y! tag:yaml.org,2002:\n--- !y!str 5\n", "'5'"},
        {"a: &x 1\nb: *x\nc: [*x, &y [*x], *y]\n", "{a: 1, b: 1, c: [1, [1], [1]]}"},
        {"&k a: 1\nb: *k\n", "{a: 1, b: 'a'}"},
        {"- &k a\n- *k : 1\n", "['a', {a: 1}]"},
        {"- &m {a: 1, b: 2}\n- {b: 3, <<: *m, c: 4}\n", "[{a: 1, b: 2}, {a: 1, b: 3, c: 4}]"},
        {"- &m {a: 1, b: 2}\n- &n {b: 5, d: 6}\n- <<: [*m, *n]\n  d: 7\n", "[{a: 1, b: 2}, {b: 5, d: 6}, {b: 2, d: 7, a: 1}]"},
        {"- &m {a: 1}\n- &n {<<: *m, b: 2}\n- <<: *n\n", "[{a: 1}, {a: 1, b: 2}, {a: 1, b: 2}]"},
        {"{<<: {a: 1}, <<x: 2, '<<': 3}", "{a: 1, <<x: 2, <<: 3}"},
        {"<<: []\na: 1\n", "{a: 1}"},
    };
    CHECK(rows, yaml);
    static const struct row refused[] = {
        {"a: !!int x", "f.yaml:1:4: \"x\" is no whole number, as its tag !!int says"},
        {"a: !!int 1.5", "f.yaml:1:4: \"1.5\" is no whole number, as its tag !!int says"},
        {"a: !!int ''", "f.yaml:1:4: \"\" is no whole number, as its tag !!int says"},
        {"a: !!float x", "f.yaml:1:4: \"x\" is no number, as its tag !!float says"},
        {"a: !!float .", "f.yaml:1:4: \".\" is no number, as its tag !!float says"},
        {"a: !!float 1e", "f.yaml:1:4: \"1e\" is no number, as its tag !!float says"},
        {"a: !!bool 1", "f.yaml:1:4: \"1\" is no boolean, as its tag !!bool says"},
        {"a: !!str [1]", "f.yaml:1:4: the tag !!str does not fit what follows it"},
        {"a: !!seq x", "f.yaml:1:4: the tag !!seq does not fit what follows it"},
        {"a: !!map [1]", "f.yaml:1:4: the tag !!map does not fit what follows it"},
        {"a: !!timestamp 2024-01-01",
         "f.yaml:1:4: the tag !!timestamp is not known here; known are !!str !!int !!float !!bool !!null !!seq !!map"},
        {"a: !!python/name:x y",
         "f.yaml:1:4: the tag !!python/name:x is not known here; known are !!str !!int !!float !!bool !!null !!seq !!map"},
        {"a: !mine x", "f.yaml:1:4: the tag !mine is not known here; known are !!str !!int !!float !!bool !!null !!seq !!map"},
        {"a: *x", "f.yaml:1:4: the alias *x has no anchor &x before it"},
        {"a: &x 1\nb: &x 2", "f.yaml:2:4: the anchor &x is there already, on line 1"},
        {"a: &x [1,\n  *x]", "f.yaml:2:3: the alias *x stands within its own anchor, on line 1"},
        {"a: &x {<<: *x}", "f.yaml:1:12: the alias *x stands within its own anchor, on line 1"},
        {"a: {<<: 5}", "f.yaml:1:9: << takes a map or a list of maps"},
        {"a: {<<: [{}, x]}", "f.yaml:1:14: << takes a map or a list of maps"},
        {"a: {<<: {}, <<: {}}", "f.yaml:1:13: << stands twice in this map; it takes a list of maps too"},
    };
    CHECK(refused, yaml);
}

static void keys(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a: 1\nb: 2\na: 3\n", "f.yaml:3:1: the key \"a\" stands twice in this map; first on line 1"},
        {"x:\n  - {a: 1,\n     'a': 2}\n", "f.yaml:3:6: the key \"a\" stands twice in this map; first on line 2"},
        {"1: a", "f.yaml:1:1: the key 1 is no text to YAML; put it in quotes"},
        {"a: {yes: 1}", "f.yaml:1:5: the key yes is no text to YAML; put it in quotes"},
        {"~: 1", "f.yaml:1:1: the key ~ is no text to YAML; put it in quotes"},
        {"{? : 1}", "f.yaml:1:4: the key  is no text to YAML; put it in quotes"},
        {"- &a 5\n- *a : 1\n", "f.yaml:2:3: the key *a is no text to YAML; put it in quotes"},
        {"? [a]\n: 1", "f.yaml:1:3: a key must be a text, found a list"},
        {"{{a: 1}: 2}", "f.yaml:1:2: a key must be a text, found a map"},
        {"'1': a\n'yes': b\n2024-01-01: c\n", "{1: 'a', yes: 'b', 2024-01-01: 'c'}"},
    };
    CHECK(rows, yaml);
}

static void bad_yaml(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document begins here; one file holds one"},
        {"a: [1, 2", "f.yaml:2:1: did not find expected ',' or ']', while parsing a flow sequence that begins on line 1"},
        {"a:\n\t- 2",
         "f.yaml:2:1: found character that cannot start any token, while scanning for the next token that begins on line "
                         "2; indent with spaces, not tabs, and put a text that begins with one of % @ ` in quotes"},
        {"a: @x",
         "f.yaml:1:4: found character that cannot start any token, while scanning for the next token that begins on line 1; "
                  "indent with spaces, not tabs, and put a text that begins with one of % @ ` in quotes"},
        {"a: b: c", "f.yaml:1:5: mapping values are not allowed in this context"},
        {"a: 1\nb\n", "f.yaml:3:1: could not find expected ':', while scanning a simple key that begins on line 2"},
        {"a: 'x", "f.yaml:1:6: found unexpected end of stream, while scanning a quoted scalar that begins on line 1"},
        {"a: \"\\q\"", "f.yaml:1:5: found unknown escape character, while parsing a quoted scalar that begins on line 1"},
        {"a: x\x01", "f.yaml:1:5: control characters are not allowed (0x01)"},
        {"b: 1\na: \xc3\xa9\xff", "f.yaml:2:5: byte 0xff is no UTF-8; save the file as UTF-8"},
        {"a: \"x\\0y\"", "f.yaml:1:4: a text with a NUL character in it"},
        {"\xff\xfe" "a", "f.yaml:1:1: byte 0xff is no UTF-8; save the file as UTF-8"},
    };
    CHECK(rows, yaml);
    struct tune_document *d = tune_document_parse("f.yaml", "a\0b", 3, false);
    assert_null(d);
    assert_error_has("f.yaml:1:2: control characters are not allowed (0x00)");
}

static void limits(void **state)
{
    (void)state;
    /* deep, by brackets, by blocks, by aliases */
    char text[4096] = "", part[256];
    memset(text, '[', 100);
    memset(text + 100, ']', 100);
    assert_int_equal(strlen(show(yaml(text))), 200);
    assert_int_equal(strlen(show(json(text))), 200);
    memset(text, '[', 101);
    memset(text + 101, ']', 101);
    assert_string_equal(show(yaml(text)), "f.yaml:1:101: nested deeper than 100");
    assert_string_equal(show(json(text)), "f.json:1:101: nested deeper than 100");
    *text = 0;
    for (int i = 0; i < 100; i++) {
        snprintf(part, sizeof part, i ? "- &a%d [*a%d]\n" : "- &a0 []\n", i, i - 1);
        strcat(text, part);
    }
    assert_string_equal(show(yaml(text)), "f.yaml:100:9: nested deeper than 100, with the alias *a98 written out");
    text[strlen(text) - strlen(part)] = 0;
    struct tune_document *d = yaml(text);
    assert_got(d);
    tune_document_free(d);

    /* many, by aliases of aliases */
    strcpy(text, "- &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 8; i++) {
        snprintf(part, sizeof part, "- &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i - 1, i - 1,
         i - 1,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        strcat(text, part);
    }
    assert_string_equal(show(yaml(text)), "f.yaml:7:8: more than 2000000 values, aliases written out");

    /* many, written */
    size_t n = 2000001;
    char *many = malloc(2 * n + 2);
    assert_non_null(many);
    many[0] = '[';
    for (size_t i = 0; i < n; i++)
        memcpy(many + 1 + 2 * i, "1,", 2);
    many[2 * n] = ']';
    d = tune_document_parse("f.json", many, 2 * n + 1, true);
    assert_null(d);
    assert_error_has("f.json:1:4000000: more than 2000000 values");
    free(many);
    assert_null(tune_document_parse("f", "", (size_t)TUNE_DOCUMENT_BYTES + 1, false));
    assert_error_has("more than the 67108864");
}

static void json_trees(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{\"a\": [1, -0, 1.0, 1e5, -2.5E-3, true, false, null, \"x\\u00e9\\n\"], \"b\": {}}",
         "{a: [1, 0, 1.0, 100000.0, -0.0025, True, False, None, 'x\u00e9\\n'], b: {}}"},
        {"[9223372036854775807, -9223372036854775808]", "[9223372036854775807, -9223372036854775808]"},
        {" \"yes\" ", "'yes'"},
        {"\xef\xbb\xbf[1]", "[1]"},
        {"\xef\xbb\xbf", "f.json:1:1: the JSON ends here, expected a value"},
        {"{\"1\": [], \"<<\": {\"a\": 1}}", "{1: [], <<: {a: 1}}"},
        {"", "f.json:1:1: the JSON ends here, expected a value"},
        {"{\"a\": 1,}", "f.json:1:9: found '}', expected a key in quotes"},
        {"{'a': 1}", "f.json:1:2: found ''', expected a key in quotes"},
        {"[1] 2", "f.json:1:5: found '2', expected nothing more"},
        {"[01]", "f.json:1:2: found '0', expected a number without leading zeros"},
        {"[NaN]", "f.json:1:2: found NaN, which Python writes and JSON has not; expected a value"},
        {"[1,\n 9223372036854775808]",
         "f.json:2:2: 9223372036854775808 is a whole number beyond 64 bits; if it is a text, put it in quotes"},
        {"{\"a\": 1,\n\n \"a\": 2}", "f.json:3:2: the key \"a\" stands twice in this map; first on line 1"},
        {"{\"a\\u0000\": 1}", "f.json:1:2: a text with a NUL character in it"},
        {"{\"a\":\n\"\\u0000\"}", "f.json:2:1: a text with a NUL character in it"},
        {"[\"\xff\"]", "f.json:1:3: byte 0xff is no UTF-8; save the file as UTF-8"},
        {"[\"\\ud800\"]", "f.json:1:3: a lone surrogate escape (\\ud800) is not text"},
    };
    CHECK(rows, json);
}

static void places(void **state)
{
    (void)state;
    struct tune_document *d = yaml("# c\nspace:\n  - id: \"é\"\n    v: [1,   two]\n  - {}\n");
    assert_got(d);
    const struct tune_node *list = tune_node_get(d->root, "space"), *first = list->items[0], *v = tune_node_get(first, "v");
    assert_int_equal(d->root->line, 2);
    assert_int_equal(d->root->column, 1);
    assert_int_equal(list->line * 100 + list->column, 303);
    assert_int_equal(first->line * 100 + first->column, 305);
    assert_int_equal(first->keys[1]->line * 100 + first->keys[1]->column, 405);
    assert_int_equal(v->line * 100 + v->column, 408);
    assert_int_equal(v->items[1]->line * 100 + v->items[1]->column, 414);
    assert_int_equal(tune_document_fail(d, v->items[1], "the %s", "thing"), -1);
    assert_string_equal(tune_error_message(), "f.yaml:4:14: the thing");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    tune_document_fail(d, NULL, "nowhere");
    assert_string_equal(tune_error_message(), "f.yaml: nowhere");
    tune_document_free(d);

    d = json("\n{ \"a\" : [ 1,\n   {\"b\"\n: null} ] }");
    assert_got(d);
    const struct tune_node *a = tune_node_get(d->root, "a"), *inner = a->items[1];
    assert_int_equal(d->root->line * 100 + d->root->column, 201);
    assert_int_equal(d->root->keys[0]->line * 100 + d->root->keys[0]->column, 203);
    assert_int_equal(a->line * 100 + a->column, 209);
    assert_int_equal(a->items[0]->line * 100 + a->items[0]->column, 211);
    assert_int_equal(inner->line * 100 + inner->column, 304);
    assert_int_equal(inner->keys[0]->line * 100 + inner->keys[0]->column, 305);
    assert_int_equal(inner->items[0]->line * 100 + inner->items[0]->column, 403);
    tune_document_free(d);
    tune_document_free(NULL);
}

static void members(void **state)
{
    (void)state;
    struct tune_document *d = yaml("text: hi\nnumber: 310.5\nwhole: 7\nflag: on\nnone:\nlist: [1, [a, no]]\nmap: {a: 1}\n"
                                   "quoted: \"7\"\nexponent: 1e-5\nword: 'true'\nbig: 1.0e+16\n");
    assert_got(d);
    const struct tune_node *m = d->root;
    const char *t = "kept";
    int64_t w = -1;
    double n = -1;
    bool b = false;
    assert_null(tune_node_get(m, "tex"));
    assert_null(tune_node_get(NULL, "text"));
    assert_null(tune_node_get(tune_node_get(m, "list"), "text"));

    assert_ok(tune_document_text(d, m, "absent", false, &t));
    assert_ok(tune_document_text(d, m, "none", false, &t));
    assert_ok(tune_document_text(d, NULL, "none", false, &t));
    assert_string_equal(t, "kept");
    assert_ok(tune_document_text(d, m, "text", true, &t));
    assert_string_equal(t, "hi");
    assert_ok(tune_document_loose_text(d, m, "number", true, &t));
    assert_string_equal(t, "310.5");
    assert_ok(tune_document_loose_text(d, m, "big", true, &t));
    assert_string_equal(t, "1e+16");
    assert_ok(tune_document_loose_text(d, m, "flag", true, &t));
    assert_string_equal(t, "True");
    assert_ok(tune_document_loose_text(d, m, "text", true, &t));
    assert_string_equal(t, "hi");
    assert_ok(tune_document_whole(d, m, "whole", true, &w));
    assert_ok(tune_document_whole(d, m, "none", false, &w));
    assert_int_equal(w, 7);
    assert_ok(tune_document_number(d, m, "number", true, &n));
    assert_true(n == 310.5);
    assert_ok(tune_document_number(d, m, "whole", true, &n));
    assert_ok(tune_document_number(d, m, "absent", false, &n));
    assert_true(n == 7);
    assert_ok(tune_document_bool(d, m, "flag", true, &b));
    assert_ok(tune_document_bool(d, m, "absent", false, &b));
    assert_true(b);

    static const char hint[] = "; a number stands without quotes, in YAML also with a point and a signed exponent (1.0e-5)";
#define REFUSED(call, message, more)                                        \
    do {                                                                    \
        char expected[512];                                                 \
        tune_error_clear();                                                 \
        assert_int_equal(call, -1);                                         \
        snprintf(expected, sizeof expected, "f.yaml:%s%s", message, more);  \
        assert_string_equal(tune_error_message(), expected);                \
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);              \
    } while (0)
    REFUSED(tune_document_text(d, m, "gone", true, &t), "1:1: the key \"gone\" is missing", "");
    REFUSED(tune_document_text(d, m, "none", true, &t), "1:1: the key \"none\" is missing", "");
    REFUSED(tune_document_whole(d, m, "gone", true, &w), "1:1: the key \"gone\" is missing", "");
    REFUSED(tune_document_number(d, m, "gone", true, &n), "1:1: the key \"gone\" is missing", "");
    REFUSED(tune_document_bool(d, m, "gone", true, &b), "1:1: the key \"gone\" is missing", "");
    REFUSED(tune_document_text(d, m, "number", true, &t),
     "2:9: \"number\" must be a text, found a number: 310.5; put it in quotes", "");
    REFUSED(tune_document_text(d, m, "flag", true, &t),
     "4:7: \"flag\" must be a text, found a boolean: True; put it in quotes", "");
    REFUSED(tune_document_text(d, m, "list", true, &t), "6:7: \"list\" must be a text, found a list", "");
    REFUSED(tune_document_loose_text(d, m, "map", true, &t), "7:6: \"map\" must be a text, found a map", "");
    REFUSED(tune_document_whole(d, m, "number", true, &w), "2:9: \"number\" must be a whole number, found a number: 310.5", "");
    REFUSED(tune_document_whole(d, m, "quoted", true, &w), "8:9: \"quoted\" must be a whole number, found a text: 7", hint);
    REFUSED(tune_document_whole(d, m, "flag", true, &w), "4:7: \"flag\" must be a whole number, found a boolean: True", "");
    REFUSED(tune_document_number(d, m, "exponent", true, &n), "9:11: \"exponent\" must be a number, found a text: 1e-5", hint);
    REFUSED(tune_document_number(d, m, "flag", true, &n), "4:7: \"flag\" must be a number, found a boolean: True", "");
    REFUSED(tune_document_number(d, m, "text", true, &n), "1:7: \"text\" must be a number, found a text: hi", "");
    REFUSED(tune_document_bool(d, m, "word", true, &b), "10:7: \"word\" must be true or false, found a text: true",
     "; without quotes");
    REFUSED(tune_document_bool(d, m, "whole", true, &b), "3:8: \"whole\" must be true or false, found a whole number: 7", "");

    assert_ok(tune_document_map(d, tune_node_get(m, "map"), "this", "a|b"));
    assert_ok(tune_document_map(d, tune_node_get(m, "map"), "this", "a"));
    REFUSED(tune_document_map(d, m, "the file", "texts|number|whole"),
     "1:1: unknown key \"text\" in the file; the nearest is \"texts\"", "");
    REFUSED(tune_document_map(d, m, "the file", "colours|whole"),
     "1:1: unknown key \"text\" in the file; expected one of: colours|whole", "");
    REFUSED(tune_document_map(d, tune_node_get(m, "list"), "this", "a"),
     "6:7: this must be a map of keys to values, found a list", "");
    REFUSED(tune_document_map(d, tune_node_get(m, "text"), "this", "a"),
     "1:7: this must be a map of keys to values, found a text", "");
    REFUSED(tune_document_map(d, NULL, "this", "a"), " this must be a map of keys to values, found nothing", "");

    struct tune_value v;
    char spelled[64];
    assert_ok(tune_document_value(d, tune_node_get(m, "list"), &v));
    tune_value_repr(&v, spelled, sizeof spelled);
    assert_string_equal(spelled, "[1, ['a', False]]");
    assert_ok(tune_document_value(d, tune_node_get(m, "whole"), &v));
    assert_int_equal(v.integer, 7);
    REFUSED(tune_document_value(d, m, &v), "1:1: a value must be a scalar or a list of such, found a map", "");

    char *taken = tune_document_take(d, 1 << 20);
    assert_non_null(taken);
    for (int i = 0; i < 1 << 20; i++)
        assert_int_equal(taken[i], 0);
    assert_non_null(tune_document_take(d, 0));
    assert_null(tune_document_take(d, SIZE_MAX));
    assert_error_has("f.yaml: no memory");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    tune_document_free(d);
}

static void files(void **state)
{
    (void)state;
    char path[256];
    const char *home = test_folder();
    test_write(home, "a.json", "{\"x\": 1e5}", 10);
    test_write(home, "a.yaml", "x: 1e5", 6);
    snprintf(path, sizeof path, "%s/a.json", home);
    assert_string_equal(show(tune_document_read(path)), "{x: 100000.0}");
    snprintf(path, sizeof path, "%s/a.yaml", home);
    assert_string_equal(show(tune_document_read(path)), "{x: '1e5'}");
    snprintf(path, sizeof path, "%s/b.yaml", home);
    assert_null(tune_document_read(path));
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has("b.yaml");
    assert_ok(tune_file_remove_folder(home));
}

/* How a scalar stands in the file; only those without quotes and tag have it. */
static void as_written(void **state)
{
    (void)state;
    struct tune_document *d = yaml("[1_000, 010, 1e-5, .5, yes, text, ~, 'quoted', !!str 5, a b ]");
    static const char *const written[] = {"1_000", "010", "1e-5", ".5", "yes", "text", NULL, NULL, NULL, "a b"};
    assert_got(d);
    for (int i = 0; i < 10; i++)
        if (written[i])
            assert_string_equal(d->root->items[i]->written, written[i]);
        else
            assert_null(d->root->items[i]->written);
    assert_null(d->root->written);
    tune_document_free(d);
}

static void without_libyaml(void **state)
{
    (void)state;
    hidden_library = "libyaml-0.so.2";
    assert_null(yaml("a: 1"));
    assert_string_equal(tune_error_message(), "f.yaml: this is YAML, and libyaml-0.so.2, which reads it, is not on this machine "
                                              "(Debian: apt-get install libyaml-0-2)");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    assert_string_equal(show(json("{\"a\": 1}")), "{a: 1}"); /* JSON needs no library */
    hidden_library = NULL;
    assert_string_equal(show(yaml("a: 1")), "{a: 1}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_scalars), cmocka_unit_test(tags_and_anchors), cmocka_unit_test(keys), cmocka_unit_test(bad_yaml),
        cmocka_unit_test(limits), cmocka_unit_test(json_trees), cmocka_unit_test(places), cmocka_unit_test(members),
        cmocka_unit_test(files), cmocka_unit_test(as_written), cmocka_unit_test(without_libyaml),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
