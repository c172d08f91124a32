/* record.c - the record of the operation: a new one, or the one to go on with. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/random.h"
#include "core/version.h"
#include "files/json.h"
#include "sweep.h"

static int has_record(const char *id, bool *there)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/operations/%s.json", my.store, id));
    *there = tune_file_exists(path);
    return 0;
}

/* A name from the user must be new. A name from an operation file may be used again; it then gets
 * an ending. */
static int name_operation(char id[128])
{
    const char *name = my.join ? my.join : my.name ? my.name : sweep.operation.name;
    unsigned char bytes[3];
    bool taken = false;
    if (name) {
        if (!*name || strlen(name) > 100 || strchr(name, '/') || *name == '.' || !tune_utf8_valid(name, strlen(name), NULL))
            return tune_error_usage("an operation's name has 1 to 100 bytes of UTF-8, no '/', no '.' at its begin");
        TRY(my.join ? 0 : has_record(name, &taken));
        snprintf(id, 128, "%s", name);
    }
    if (taken && my.name)
        return tune_error_usage("%s has an operation %s already: --resume %s goes on with it, "
                                "--join %s shares it; a new one needs another --name", my.store,
                                name, name, name);
    if (name && !taken)
        return 0;
    TRY(tune_random_fresh(bytes, sizeof bytes));
    snprintf(id, 128, "%s-%02x%02x%02x", name ? name : "randomwalk-" TUNE_VERSION, bytes[0], bytes[1], bytes[2]);
    return 0;
}

/* Options from flags and operation file. */
static int read_options(struct tune_operation_record *r)
{
    struct tune_jobs_options *o = &r->options;
    o->order = (struct tune_order_options){sweep.operation.mode, (uint64_t)my.seed, sweep.operation.grouping,
                                           sweep.operation.group_count, sweep.operation.entities};
    o->selector = sweep.operation.selector;
    o->filter = sweep.operation.filter;
    o->memoize = sweep.operation.memoize;
    o->repeat = my.repeat;
    r->retries = sweep.operation.retries;
    r->until_stable = my.until_stable;
    r->where = my.where;
    r->entity = my.entity;
    r->set = my.set;
    r->minimize = my.minimize;
    r->maximize = my.maximize;
    r->budget = my.budget;
    r->stop_when = my.stop_when;
    r->factor = my.factor;
    return tune_accept_read(my.accept, &o->accept);
}

static bool same_grouping(const struct tune_order_options *a, const struct tune_order_options *b)
{
    bool same = a->group_count == b->group_count;
    for (int i = 0; same && i < a->group_count; i++)
        same = !strcmp(a->grouping[i], b->grouping[i]);
    return same;
}

static int check_text(const char *id, const char *flag, const char *asked, const char *known)
{
    if (!tune_flags_given(&my.tune, flag) || (known && !strcmp(asked, known)))
        return 0;
    return tune_error_usage("operation %s was begun %s--%s%s%s, and the command line asks for --%s %s; leave that out, or "
                            "begin an operation of another name", id, known ? "with " : "without ", flag,
                            known ? " " : "", known ? known : "", flag, asked);
}

int sweep_check_options(const struct tune_operation_record *known)
{
    struct tune_operation_record asked = {0};
    TRY(read_options(&asked));
    TRY(check_text(known->id, "where", asked.where, known->where));
    TRY(check_text(known->id, "entity", asked.entity, known->entity));
    TRY(check_text(known->id, "set", asked.set, known->set));
    TRY(check_text(known->id, "minimize", asked.minimize, known->minimize));
    TRY(check_text(known->id, "maximize", asked.maximize, known->maximize));
    TRY(check_text(known->id, "budget", asked.budget, known->budget));
    TRY(check_text(known->id, "stop-when", asked.stop_when, known->stop_when));
    const struct tune_jobs_options *a = &asked.options, *k = &known->options;
    const struct { const char *flag; bool in_file, differs; } all[] = {
        {"order", true, a->order.mode != k->order.mode},
        {"sampler", true, a->selector != k->selector},
        {"grouping", true, !same_grouping(&a->order, &k->order)},
        {"entities", true, a->order.limit != k->order.limit},
        {"filter", true, a->filter != k->filter},
        {"seed", false, a->order.seed != k->order.seed},
        {"repeat", false, a->repeat != k->repeat},
        {"remeasure", true, a->memoize != k->memoize},
        {"accept", false, a->accept != k->accept},
        {"retries", true, asked.retries != known->retries},
        {"factor", false, asked.factor != known->factor},
        {"until-stable", false, asked.until_stable != known->until_stable},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool flag = tune_flags_given(&my.tune, all[i].flag);
        if (!all[i].differs || !(flag || (my.operation && all[i].in_file)))
            continue;
        return tune_error_usage("operation %s was begun with another --%s than %s asks for; leave "
                                "that out, or begin an operation of another name", known->id,
                                all[i].flag, flag ? "the command line" : my.operation);
    }
    return 0;
}

int sweep_new_operation(void)
{
    TRY(read_options(&sweep.record));
    sweep.record.started_s = tune_clock_date_s();
    snprintf(sweep.record.space, sizeof sweep.record.space, "space-%s", sweep.space->id);
    return name_operation(sweep.record.id);
}

/* Read the space file of a recorded operation from the store. */
static int find_recorded_space(const struct tune_operation_record *r)
{
    static char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/spaces/%s.yaml", my.store, r->space));
    if (!tune_file_exists(path))
        TRY(tune_path(path, "%s/spaces/%s.json", my.store, r->space));
    my.space = path;
    return 0;
}

int sweep_open_store(bool make)
{
    if (!sweep.store && (make || tune_file_is_folder(my.store)))
        return (sweep.store = tune_store_open(my.store, !my.dry_run && !my.resume && my.points == 0)) ? 0 : -1;
    return 0;
}

int sweep_find_record(bool *there)
{
    const char *id = my.resume ? my.resume : my.join;
    *there = false;
    if (!!my.resume + !!my.join + !!my.name > 1)
        return tune_error_usage("--resume, --join and --name each name the operation; give one of them");
    if (!id)
        return 0;
    TRY(has_record(id, there));
    if (!*there && my.join && my.points == 0)
        return 0;
    TRY(sweep_open_store(false));
    if (!sweep.store)
        return tune_error_usage("there is no store to go on in; --store names its folder");
    TRY(tune_operation_record_read(sweep.store, id, &sweep.record)); /* the error lists the
                                                                      * operations */
    return *my.space ? 0 : find_recorded_space(&sweep.record);
}

int sweep_find_record_late(bool *there)
{
    TRY(sweep_find_record(there));
    const char *set = *there ? sweep.record.set : my.set;
    if (*there && (sweep.record.options.order.mode == TUNE_ORDER_HALVING) != (sweep.operation.mode == TUNE_ORDER_HALVING))
        return tune_error_usage("operation %s has just been begun with another --order; give the same", sweep.record.id);
    if (!set == !my.set && (!set || !strcmp(set, my.set)))
        return 0;
    return tune_error_usage("operation %s has just been begun with another --set; give the same", sweep.record.id);
}
