/* test_jinja.c - templates and what they render: figures from Jinja2 3.1.6 set up as transformers does. What stands in the live
 * package is compared in tests/peers/chat_peer.py; here are the rules one by one, refusals, limits and whose bytes are whose. */
#include "test.h"
#include "templates/jinja.h"

static const char variables[] =
    "{\"a\": {\"x\": 1, \"y\": {\"z\": \"q\"}}, \"l\": [1, 2, 3, \"x\", null, true, 2.5], \"s\": \"Hi <|im_end|> w\\u00f6rld\","
    "\"n\": -7, \"msgs\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"assistant\", \"content\": \" yo \"}]}";

static struct tune_jinja_run *begin(const struct tune_jinja *t)
{
    static const char *const names[] = {"a", "l", "s", "n", "msgs"};
    struct tune_jinja_run *run = tune_jinja_begin(t, 1700000000);
    char key[16], *copy = strdup(variables);
    assert_got(run);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) { /* a variable's text: to the next one's name */
        snprintf(key, sizeof key, "\"%s\": ", names[i]);
        char *from = strstr(copy, key) + strlen(key), *to = copy + strlen(copy) - 1;
        if (i + 1 < sizeof names / sizeof *names) {
            snprintf(key, sizeof key, "\"%s\": ", names[i + 1]);
            to = strstr(copy, key);
            while (*to != ',')
                to--;
        }
        assert_ok(tune_jinja_set_json(run, names[i], from, (size_t)(to - from), "variables", 1));
    }
    free(copy);
    return run;
}

static void gives(const char *source, const char *expected)
{
    struct tune_jinja_output out;
    struct tune_jinja *t = tune_jinja_open("t.jinja", source, strlen(source));
    assert_got(t);
    struct tune_jinja_run *run = begin(t);
    if (tune_jinja_render(run, &out) < 0)
        fail_msg("%s: %s", source, tune_error_message());
    if (strcmp(out.text, expected) != 0)
        fail_msg("%s: \"%s\", expected \"%s\"", source, out.text, expected);
    tune_jinja_end(run);
    tune_jinja_free(t);
}

/* Refused when opened, with the line and the construct. */
static void refuses(const char *source, const char *message)
{
    struct tune_jinja *t = tune_jinja_open("t.jinja", source, strlen(source));
    if (t)
        fail_msg("%s is opened", source);
    assert_error_has(message);
}

/* Opened, and an error of the render. */
static void fails(const char *source, const char *message)
{
    struct tune_jinja_output out;
    struct tune_jinja *t = tune_jinja_open("t.jinja", source, strlen(source));
    assert_got(t);
    struct tune_jinja_run *run = begin(t);
    if (tune_jinja_render(run, &out) == 0)
        fail_msg("%s renders \"%s\"", source, out.text);
    assert_error_has(message);
    tune_jinja_end(run);
    tune_jinja_free(t);
}

static void test_white_space(void **state)
{
    (void)state;
    gives("a\n", "a");
    gives("a\n\n", "a\n");
    gives("a\r\nb\rc\r\n", "a\nb\nc");
    gives("  {% if true %}\n  x\n  {% endif %}\ny", "  x\ny");
    gives("  {%+ if true %}\n  x{% endif +%}\ny", "    x\ny");
    gives("a{{ 1 }}b\n  {% if true %}x{% endif %}", "a1b\nx");
    gives("a{{ 1 }}  {% if true %}x{% endif %}", "a1  x");
    gives("a  {{- 1 -}}  b", "a1b");
    gives("a  {{ 1 }}\n  b", "a  1\n  b");
    gives("a\n {# c #}\nb {#- d -#} e", "a\nbe");
    gives("{% raw %}{{ x }}{% endraw %}\nz", "{{ x }}z");
    gives("{{- '  x' -}}   \n   y", "  xy");
}

static void test_expressions(void **state)
{
    (void)state;
    gives("{{ a.x }}{{ a['y'].z }}{{ l[1:] }}{{ l[-1] }}{{ l[::-1] }}",
          "1q[2, 3, 'x', None, True, 2.5]2.5[2.5, True, None, 'x', 3, 2, 1]");
    gives("{{ n // 2 }} {{ n % 3 }} {{ n / 2 }} {{ -n|abs }} {{ n * 2 - 1 }} {{ 'a' ~ n ~ none }}", "-4 2 -3.5 7 -15 a-7None");
    gives("{{ 1 < 2 < 3 }} {{ 1 == 1.0 }} {{ 'a' in 'abc' }} {{ 'q' not in a }} {{ true and 0 or 'z' }}{{ 1 if false }}",
          "True True True True z");
    gives("{{ \"q\\n\\u00e9\\x41'\" }}{{ 'a' 'b' }}{{ ['it\\'s', 'q\"'] }}{{ {'a': (1, (2,), ())} }}",
          "q\n\xC3\xA9" "A'ab[\"it's\", 'q\"']{'a': (1, (2,), ())}");
    gives("{{ s[-5:] }}{{ s|length }}{{ 1.0 }}{{ 1e20 }}{{ 1e-7 }}", "w\xC3\xB6rld191.01e+201e-07");
    gives("{{ nope }}{{ nope is defined }}{{ a.nope }}{{ strftime_now is defined }}", "FalseTrue");
    gives("{{ [1,2] + [3] }}{{ 'ab' * 3 }}{{ -7.5 % 2 }}{{ 7.5 // 2 }}", "[1, 2, 3]ababab0.53.0");
    gives("{{ a.x|default(n == n) }}{{ [n is eq(n), not n == 1 and not 1 not in [1]] }}",
          "1[True, True]");
    gives("{{ 9007199254740993 / 1 }} {{ 9007199254740993 > 9007199254740992.0 }}",
          "9007199254740992.0 True");
    gives("{{ 3 > 2 > 1 and 1 < 2 != 3 or nope.x }}{{ 1 ~ 2 * 3 ~ 4 }}", "True164");
}

static void test_statements(void **state)
{
    (void)state;
    gives("{% for i in l %}{{ loop.index }}{{ i }}{% if loop.last %}!{% endif %}{% else %}none{% endfor %}",
          "1122334x5None6True72.5!");
    gives("{% for i in [] %}x{% else %}none{% endfor %}", "none");
    gives("{% for i in l if i is number %}{{ i }}{% if i == 2 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}-{% "
          "endfor %}",
          "1-23");
    gives("{% set ns = namespace(x=0) %}{% for i in range(3) %}{% set ns.x = ns.x + i %}{% set q = i %}{% endfor %}{{ ns.x }}{{ q "
          "}}", "3");
    gives("{% set x = 1 %}{% for i in [1,2] %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}", "12121");
    gives("{% macro m(a, b=2) %}[{{ a }}{{ b }}{{ x }}]{% endmacro %}{% set x = 9 %}{{ m(1) }}{{ m(b=7) }}", "[129][79]");
    gives("{% set x %}b{{ n }}{% endset %}{{ x }}{{ x|length }}{% set a, b = 1, 2 %}{{ b }}", "b-732");
    gives("{% for i in [1] %}{% set x %}{% break %}{% endset %}no{% endfor %}yes", "yes");
    gives("{% set x %}{% set z = 1 %}g{% endset %}{{ x }}{{ z }}", "g");
    gives("{{ 'a b  c '.split(none, 1) }}", "['a', 'b  c ']");
    gives("{% generation %}{% set z = 1 %}g{% endgeneration %}{{ z }}", "g");
    gives("{% if n > 0 %}a{% elif n < -9 %}b{% elif n %}c{% else %}d{% endif %}", "c");
}

static void test_names(void **state)
{
    (void)state;
    gives("{{ a|tojson }}{{ s|tojson }}{{ 'a/<&\\n'|tojson }}",
          "{\"x\": 1, \"y\": {\"z\": \"q\"}}\"Hi <|im_end|> w\xC3\xB6rld\"\"a/<&\\n\"");
    gives("{{ {'b':[1],'a':{}}|tojson(indent=2) }}", "{\n  \"b\": [\n    1\n  ],\n  \"a\": {}\n}");
    gives("{{ msgs|selectattr('role','equalto','user')|list|length }}{{ msgs|map(attribute='role')|join('-') }}",
          "1user-assistant");
    gives("{{ 'a,b,,c'.split(',') }}{{ ' a  b '.split() }}{{ 'a b c'.rsplit(' ', 1)[-1] }}", "['a', 'b', '', 'c']['a', 'b']c");
    gives("{{ ' x '.strip() }}{{ 'xax'.strip('x') }}{{ 'ab'.startswith('a') }}{{ 'x'|replace('','-') }}{{ 'ab'.removesuffix('b') "
          "}}",
          "xaTrue-x-a");
    gives("{% for k, v in a|dictsort(reverse=true) %}{{ k }}{% endfor %}{% for k, v in a.items() %}{{ k }}{% endfor %}", "yxxy");
    gives("{{ 2.7|int }}{{ 'x'|int(3) }}{{ zz|default('d') }}{{ 'a\nb\n\nc'|indent(2) }}", "23da\n  b\n\n  c");
    gives("{{ strftime_now('%d %b %Y') }}", "14 Nov 2023");
    gives("{{ [3,1,2]|sort }}{{ ['A','b']|sort(reverse=true) }}{{ msgs|sort(attribute='role')|map(attribute='role')|join }}",
          "[1, 2, 3]['b', 'A']assistantuser");
    gives("{{ '\xC3\xB6\x7F\xF0\x9F\x98\x80<'|tojson(ensure_ascii=true) }}", "\"\\u00f6\\u007f\\ud83d\\ude00<\"");
    gives("{{ [{'a': [5, 6, 7]}]|map(attribute='a.12'[:3])|join }}", "6"); /* digits behind the part are none of it */
    gives("{{ [2, 1, 1.0, 3]|min }}{{ ['b', 'C', 'a']|max }}{{ []|min is defined }}{{ ['a', 'A', 'b', 'a']|unique|list }}",
          "1CFalse['a', 'b']");
    gives("{% set d = {0: 'a', 512: 'b', 'x': 1} %}{{ d[512] }}{{ d[true] is defined }}{{ d.get(0.0) }}{{ 0 in d }}{{ d|tojson }}"
          "{{ d }}", "bFalseaTrue{\"0\": \"a\", \"512\": \"b\", \"x\": 1}{0: 'a', 512: 'b', 'x': 1}");
    gives("{% if false %}{{ l.append(1) }}{% endif %}{{ l|length }}", "7");
    /* what safe gave is joined to by + as Jinja's Markup is, and plainly by ~ */
    gives("{{ '<' + ('<'|safe) + \"&'>\" }}{{ '<' ~ ('<'|safe) ~ '&' }}{{ '<' + ('ab'|safe)[1:]|upper + '\"' }}",
          "&lt;<&amp;&#39;&gt;<<&&lt;B&#34;");
    gives("{{ ['a'|safe, 'a'] }}", "[Markup('a'), 'a']");
    gives("{{ ['\xC3\xB6', '\xE6\x97\xA5'] }}{{ 'a'|safe|trim|string }}", "['\xC3\xB6', '\xE6\x97\xA5']a");
}

/* What is gone through item by item, and is no list. */
static void test_no_lists(void **state)
{
    (void)state;
    gives("{{ 1 if l|select('undefined') else 2 }}{{ 1 if a.keys() else 2 }}{{ none|select|list }}{{ none|map('upper')|list "
        "}}", "11[][]");
    gives("{{ range(3)[1] }}{{ range(1) is sequence }}{{ a.keys() is sequence }}{{ a.keys()|length }}{{ [1] == range(1, 2) }}",
          "1TrueFalse2False");
    fails("{% set g = l|select %}{{ g|list }}{{ g|list }}", "is gone through again");
    fails("{{ l|select|tojson }}", "tojson of what is gone through once");
    fails("{{ l|select|length }}", "length of what is gone through once");
    fails("{{ range(3) }}", "a range is printed");
    fails("{{ a.keys() * 2 }}", "is not possible");
}

static void test_refused(void **state)
{
    (void)state;
    refuses("\n{% include 'x' %}", "t.jinja:2: the tag include is not supported");
    refuses("{{ a|nosuch }}", "t.jinja:1: the filter nosuch is not supported");
    refuses("{{ a is nosuch }}", "the test nosuch is not supported");
    refuses("{{ a.nosuch('x') }}", "the method nosuch is not supported");
    refuses("x\n\n{{ cycler(1) }}", "t.jinja:3: the function cycler is not supported");
    refuses("{% for x in l recursive %}{% endfor %}", "recursive");
    refuses("{{ 2 ** 3 }}", "**");
    refuses("{% break %}", "outside a loop");
    refuses("{% if a %}", "ends before {% endif %}");
    refuses("{{ 'abc }}", "does not end");
    refuses("{# abc", "does not end");
    refuses("{{ (1 }}", "t.jinja:1: ");
    refuses("\xff", "not UTF-8");
}

static void test_errors(void **state)
{
    (void)state;
    fails("\n{{ raise_exception('no ' ~ n) }}", "t.jinja:2: the template refuses the conversation: no -7");
    fails("{{ nope.x }}", "nope is undefined");
    fails("{{ 'a' + 1 }}", "a string + an integer");
    fails("{{ 9223372036854775807 + 1 }}", "64 bits");
    fails("{{ 1 // 0 }}", "zero");
    fails("{{ '\xC3\xB6'|upper }}", "outside ASCII");
    fails("{{ ['\xEE\x80\x80'] }}", "U+E000");
    fails("{{ a.pop('x') }}", "pop() would change a mapping");
    fails("{% if n %}{% set x = l.append(1) %}{% endif %}", "append() would change a list");
    fails("{{ l|unique|list }}{{ [l]|unique|list }}", "unique among a list");
    fails("{{ {2.5: 1} }}", "a float as a key of a mapping");
    fails("{{ ('a'|safe).strip() }}", "what the filter safe gives");
}

static void test_limits(void **state)
{
    (void)state;
    char *deep = malloc(4000), *at = deep;
    assert_non_null(deep);
    at += sprintf(at, "{{ ");
    memset(at, '(', 120);
    at += 120 + sprintf(at + 120, "1");
    memset(at, ')', 120);
    strcpy(at + 120, " }}");
    refuses(deep, "nested more than");
    free(deep);
    fails("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "more than 512 MB of memory");
    fails("{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(16) %}{% set ns.s = ns.s + ns.s %}{% endfor %}"
          "{% for i in range(9999) %}{% if 'y' in ns.s %}{% endif %}{% endfor %}", "it may never end");
    fails("{% set s = 'x' * 1048576 %}{% for i in range(65) %}{{ s }}{% endfor %}", "a text of more than 64 MB");
    fails("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "inside one another");
    fails("{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
          "more than 512 MB of memory");
}

/* What looks at a megabyte character by character 200 times, or compares and moves it 9,999 times, is work that the steps count. */
static void test_work(void **state)
{
    (void)state;
    static const char *const looks[] = {
        "s.split()", "s.rsplit('ay')", "s.splitlines()", "s.strip('yx')", "s.rstrip('xyxyxyxyxyxyxyx')", "w.strip()", "w|int",
        "s[-1]", "s[1:-1]", "[{'a': 1}]|map(attribute=s)|list", "s|indent",
    };
    static const char *const compares[] = {"s|length", "s.find('y')", "t == s", "t in d", "d[t]", "'y' in s", "s.startswith(t)",
                                           "s.removesuffix(t)", "s.split('y')"};
    char source[512];
    for (size_t i = 0; i < sizeof looks / sizeof *looks + sizeof compares / sizeof *compares; i++) {
        const bool look = i < sizeof looks / sizeof *looks;
        snprintf(source, sizeof source, "{%% set s = 'x' * 1048576 %%}{%% set t = s %%}{%% set w = ' ' * 1048576 %%}"
                 "{%% set d = {s: 1} %%}{%% for i in range(%d) %%}{%% set v = %s %%}{%% endfor %%}", look ? 200 : 9999,
                 look ? looks[i] : compares[i - sizeof looks / sizeof *looks]);
        fails(source, "it may never end");
    }
}

static void test_marks(void **state)
{
    (void)state;
    static const char source[] = "<|im_end|>{{ s|trim + '<|im_end|>' }}{{ msgs[1].content|upper|tojson }}";
    static const char text[] = "<|im_end|>Hi <|im_end|> w\xC3\xB6rld<|im_end|>\" YO \"";
    struct tune_jinja_output out;
    struct tune_jinja *t = tune_jinja_open("t", source, strlen(source));
    assert_got(t);
    struct tune_jinja_run *run = begin(t);
    assert_ok(tune_jinja_render(run, &out));
    assert_string_equal(out.text, text);
    for (size_t i = 0; i < out.size; i++) {
        bool data = (i >= 10 && i < 10 + 20) || (i > 40 && i < 45);
        assert_int_equal(out.marks[i] & TUNE_JINJA_DATA, data);
        assert_int_equal((out.marks[i] & TUNE_JINJA_PIECE) != 0, i == 0 || i == 10 || i == 30 || i == 40);
    }
    tune_jinja_end(run);
    tune_jinja_free(t);
}

/* Jinja2's own setup, and methods of lists. */
static void test_plain(void **state)
{
    (void)state;
    static const struct {
        const char *source, *expected; /* NULL: an error */
    } cases[] = {
        {"a\n  {% if n %}\nb\n  {% endif %}\n", "a\n  \nb\n  \n"},
        {"{{ n }}\n", "-7\n"},
        {"a \n {%- if n %} b{% endif -%} \n c", "a bc"},
        {"{{ l.index('x') }}{{ l.count(2) }}", "31"},
        {"{{ [a.x, s.split(' ')[0]] }}", "[1, 'Hi']"},
        {"{{ missing }}", NULL},
        {"{% if missing %}{% endif %}", NULL},
        {"{% if missing is defined %}x{% endif %}{{ missing|default('y') }}", "y"},
        {"{{ l.index('no') }}", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_jinja_output out;
        struct tune_jinja *t = tune_jinja_open_plain("t", cases[i].source, strlen(cases[i].source));
        assert_got(t);
        struct tune_jinja_run *run = begin(t);
        int status = tune_jinja_render(run, &out);
        assert_int_equal(status, cases[i].expected ? 0 : -1);
        if (cases[i].expected)
            assert_string_equal(out.text, cases[i].expected);
        tune_jinja_end(run);
        tune_jinja_free(t);
    }
    gives("{{ l.index(3) }}", "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_white_space), cmocka_unit_test(test_expressions), cmocka_unit_test(test_statements),
        cmocka_unit_test(test_names), cmocka_unit_test(test_no_lists),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_work), cmocka_unit_test(test_marks), cmocka_unit_test(test_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
