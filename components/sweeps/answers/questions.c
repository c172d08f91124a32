/* questions.c - the questions by name, and the options that each takes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "sweeps/answers/question.h"

#define ANSWER " experiments columns sort limit "
#define ROWS " include operation build where table derive aggregate "

static const struct tune_question_kind kinds[] = {
    {"show", tune_ask_show, ANSWER ROWS "point group_by property all_properties "},
    {"best", tune_ask_best, ANSWER ROWS "maximize minimize per count predicted entities "},
    {"effect", tune_ask_effect, ANSWER ROWS "property maximize minimize x "},
    {"predict", tune_ask_predict, ANSWER " include operation build where derive property point points entities group_by "},
    {"compare", tune_ask_compare, ANSWER "build where table derive aggregate property maximize minimize regression group_by "},
    {"plot", tune_ask_plot, ANSWER ROWS "property maximize minimize x series facet "},
    {"missing", tune_ask_missing, ANSWER "operation where group_by "},
    {"status", tune_ask_status, ANSWER "label "},
    {"points", tune_ask_points, ANSWER "entity operation build where derive aggregate group_by property all_properties "},
    {"results", tune_ask_results, ANSWER "entity operation build "},
    {"export", tune_ask_export, ANSWER "where table derive aggregate group_by "},
    {"command", tune_ask_command, " experiments " ROWS "maximize minimize per count entity "},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

enum kind_of_value { TEXT, YES, INT, WHOLE, INCLUDE };
#define AT(member) offsetof(struct tune_question, member)

static const struct {
    const char *option;
    enum kind_of_value value;
    size_t at;
} members[] = {
    {"experiments", TEXT, AT(experiments)}, {"columns", TEXT, AT(arrange.columns)}, {"sort", TEXT, AT(arrange.sort)},
    {"limit", WHOLE, AT(arrange.limit)}, {"group_by", TEXT, AT(arrange.group_by)}, {"include", INCLUDE, AT(matching)},
    {"operation", TEXT, AT(operation)}, {"build", TEXT, AT(build)}, {"where", TEXT, AT(where)}, {"table", TEXT, AT(table)},
    {"derive", TEXT, AT(derive)}, {"aggregate", TEXT, AT(aggregate)}, {"point", TEXT, AT(point)}, {"entity", TEXT, AT(entity)},
    {"points", TEXT, AT(points)}, {"entities", INT, AT(entities)}, {"predicted", YES, AT(predicted)},
    {"property", TEXT, AT(properties)}, {"all_properties", YES, AT(all_properties)}, {"maximize", TEXT, AT(maximize)},
    {"minimize", TEXT, AT(minimize)}, {"per", TEXT, AT(per)}, {"count", INT, AT(most)}, {"x", TEXT, AT(x)},
    {"series", TEXT, AT(series)}, {"facet", TEXT, AT(facet)}, {"regression", TEXT, AT(regression)}, {"label", TEXT, AT(labels)},
};

const struct tune_question_kind *tune_question_find(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

bool tune_question_takes(const struct tune_question_kind *kind, const char *option)
{
    char word[64];
    int n = snprintf(word, sizeof word, " %s ", option);
    for (int i = 0; i < n && i < (int)sizeof word; i++)
        word[i] = word[i] == '-' ? '_' : word[i];
    return n < (int)sizeof word && strstr(kind->options, word);
}

static int refuse(const struct tune_question_kind *kind, const char *option)
{
    char others[256] = "";
    for (int i = 0; i < KINDS; i++)
        if (tune_question_takes(&kinds[i], option))
            tune_append_item(others, sizeof others, "%s", kinds[i].name);
    return tune_error_usage("%s takes no `%s`%s%s%s", kind->name, option, *others ? "; " : "", others,
                            !*others ? "" : strchr(others, ',') ? " do" : " does");
}

static int set_number(const char *option, const char *text, int64_t most, int64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    if (errno || end == text || *end || *number < 0 || *number > most)
        return tune_error_usage("`%s`: expected a whole number from 0 to %lld, not \"%s\"", option, (long long)most, text);
    return 0;
}

int tune_question_set(struct tune_question *q, const struct tune_question_kind *kind, const char *option, const char *text)
{
    size_t i = 0, n = sizeof members / sizeof *members;
    int64_t number;
    while (i < n && strcmp(members[i].option, option))
        i++;
    if (i == n || !tune_question_takes(kind, option))
        return refuse(kind, option);
    void *member = (char *)q + members[i].at;
    switch (members[i].value) {
    case TEXT: *(const char **)member = text; return 0;
    case YES:
    case INCLUDE: {
        const char *yes = members[i].value == YES ? "true" : "matching", *no = members[i].value == YES ? "false" : "measured";
        if (strcmp(text, yes) && strcmp(text, no))
            return tune_error_usage("`%s`: expected %s or %s, not \"%s\"", option, yes, no, text);
        *(bool *)member = !strcmp(text, yes);
        return 0;
    }
    default:
        if (set_number(option, text, members[i].value == INT ? INT32_MAX : INT64_MAX, &number) < 0)
            return -1;
        if (members[i].value == INT)
            *(int *)member = (int)number;
        else
            *(int64_t *)member = number;
        return 0;
    }
}
