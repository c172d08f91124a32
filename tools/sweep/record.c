/* record.c - the record of the operation, which is new or resumed. */

#include "core/random.h"
#include "core/version.h"
#include "files/json.h"
#include "sweep.h"

static int has_record(const struct plan *plan, const char *id, bool *there)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/operations/%s.json", plan->flags->store, id));
    *there = tune_file_exists(path);
    return 0;
}

/* Name the operation. A name from the command line must be new. A name from an operation file may
 * exist; it then gets a suffix. */
static int name_operation(struct plan *plan)
{
    const struct sweep_flags *flags = plan->flags;
    const char *name = flags->join ? flags->join : flags->name ? flags->name : plan->operation.name;
    char *id = plan->record.id;
    unsigned char bytes[3];
    bool taken = false;
    if (name) {
        if (!*name || strlen(name) > 100 || strchr(name, '/') || *name == '.' || !tune_utf8_valid(name, strlen(name), NULL))
            return tune_error_usage("the name of an operation must have 1 to 100 bytes of UTF-8, "
                                    "no '/', and no '.' at the beginning");
        TRY(flags->join ? 0 : has_record(plan, name, &taken));
        snprintf(id, 128, "%s", name);
    }
    if (taken && flags->name)
        return tune_error_usage("%s has an operation %s already: --resume %s continues it, --join "
                                "%s shares it; a new operation needs another --name", flags->store,
                                name, name, name);
    if (name && !taken)
        return 0;
    TRY(tune_random_fresh(bytes, sizeof bytes));
    snprintf(id, 128, "%s-%02x%02x%02x", name ? name : "randomwalk-" TUNE_VERSION, bytes[0], bytes[1], bytes[2]);
    return 0;
}

/* Read the options from flags and operation file. */
static int read_options(const struct plan *plan, struct tune_operation_record *r)
{
    const struct sweep_flags *flags = plan->flags;
    const struct tune_operation *file = &plan->operation;
    struct tune_jobs_options *o = &r->options;
    o->order = (struct tune_order_options){file->mode, (uint64_t)flags->seed, file->grouping, file->group_count, file->entities};
    o->selector = file->selector;
    o->filter = file->filter;
    o->memoize = file->memoize;
    o->repeat = flags->repeat;
    r->retries = file->retries;
    r->until_stable = flags->until_stable;
    r->where = flags->where;
    r->entity = plan->point_list ? plan->point_list : flags->entity;
    r->set = flags->set;
    r->minimize = flags->minimize;
    r->maximize = flags->maximize;
    r->budget = flags->budget;
    r->where_target = flags->where_target;
    r->stop_when = flags->stop_when && strcmp(flags->stop_when, ENOUGH_NEVER) ? flags->stop_when : NULL;
    r->factor = 2;
    return tune_accept_read(flags->accept, &o->accept);
}

static bool same_grouping(const struct tune_order_options *a, const struct tune_order_options *b)
{
    bool same = a->group_count == b->group_count;
    for (int i = 0; same && i < a->group_count; i++)
        same = !strcmp(a->grouping[i], b->grouping[i]);
    return same;
}

int record_check(const struct plan *plan)
{
    const struct sweep_flags *flags = plan->flags;
    const struct tune_operation_record *recorded = &plan->record;
    struct tune_operation_record asked = {0};
    TRY(points_check(plan));
    TRY(read_options(plan, &asked));
    const struct { const char *flag, *asked, *recorded; } texts[] = {
        {"where", asked.where, recorded->where},
        {"entity", asked.entity, recorded->entity},
        {"set", asked.set, recorded->set},
        {"minimize", asked.minimize, recorded->minimize},
        {"maximize", asked.maximize, recorded->maximize},
        {"budget", asked.budget, recorded->budget},
        {"where-target", asked.where_target, recorded->where_target},
        {"stop-when", flags->stop_when, recorded->stop_when},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *flag = texts[i].flag, *text = texts[i].recorded;
        if (!strcmp(flag, "stop-when") && enough_may_change(plan))
            continue;
        if (tune_flags_given(&flags->tune, flag) && !(text && !strcmp(texts[i].asked, text)))
            return tune_error_usage("operation %s was begun %s--%s%s%s, but the command line has "
                                    "--%s %s; leave that out, or give another --name", recorded->id,
                                    text ? "with " : "without ", flag,
                                    text ? " " : "", text ? text : "", flag, texts[i].asked);
    }
    const struct tune_jobs_options *a = &asked.options, *k = &recorded->options;
    const struct { const char *name; bool in_file, differs; } others[] = {
        {"--order", true, a->order.mode != k->order.mode},
        {"samplerType", true, a->selector != k->selector},
        {"--grouping", true, !same_grouping(&a->order, &k->order)},
        {"--entities", true, a->order.limit != k->order.limit},
        {"filter", true, a->filter != k->filter},
        {"--seed", false, a->order.seed != k->order.seed},
        {"--repeat", false, a->repeat != k->repeat},
        {"--remeasure", true, a->memoize != k->memoize},
        {"--accept", false, a->accept != k->accept},
        {"--retries", true, asked.retries != recorded->retries},
        {"--until-stable", false, asked.until_stable != recorded->until_stable},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bool given = others[i].name[0] == '-' && tune_flags_given(&flags->tune, others[i].name + 2);
        if (others[i].differs && (given || (flags->operation && others[i].in_file)))
            return tune_error_usage("operation %s was begun with another %s than that of %s; leave "
                                    "that out, or give another --name", recorded->id, others[i].name,
                                    given ? "the command line" : flags->operation);
    }
    return 0;
}

int record_new(struct plan *plan)
{
    TRY(read_options(plan, &plan->record));
    plan->record.started_s = tune_clock_date_s();
    snprintf(plan->record.space, sizeof plan->record.space, "space-%s", plan->space->id);
    return name_operation(plan);
}

int record_open_store(struct plan *plan, bool make)
{
    const struct sweep_flags *flags = plan->flags;
    if (!plan->store && (make || tune_file_is_folder(flags->store)))
        plan->store = tune_store_open(flags->store, !flags->dry_run && !flags->resume && !is_worker(plan));
    else
        return 0;
    return plan->store ? 0 : -1;
}

/* Find a recorded operation's space file in the store. */
static int find_space(struct plan *plan)
{
    TRY(tune_path(plan->recorded_space, "%s/spaces/%s.yaml", plan->flags->store,
                  plan->record.space));
    if (!tune_file_exists(plan->recorded_space))
        TRY(tune_path(plan->recorded_space, "%s/spaces/%s.json", plan->flags->store,
                      plan->record.space));
    plan->space_file = plan->recorded_space;
    return 0;
}

int record_find(struct plan *plan, bool *there)
{
    const struct sweep_flags *flags = plan->flags;
    const char *id = flags->resume ? flags->resume : flags->join;
    *there = false;
    if (!!flags->resume + !!flags->join + !!flags->name > 1)
        return tune_error_usage("--resume, --join and --name all give the name of the operation; "
                                "give only one of them");
    if (!id)
        return 0;
    TRY(has_record(plan, id, there));
    if (!*there && flags->join && !is_worker(plan))
        return 0;
    TRY(record_open_store(plan, false));
    if (!plan->store)
        return tune_error_usage("there is no store with operations here; give its folder with "
                                "--store");
    /* if it fails, the error lists the operations */
    TRY(tune_operation_record_read(plan->store, id, &plan->record));
    if (plan->record.options.order.mode == TUNE_ORDER_UNKNOWN)
        return tune_error_usage("operation %s has an --order that this version does not know, such as weighted or lhs; begin an "
                                "operation of another name, which takes over its results", id);
    return *plan->space_file ? 0 : find_space(plan);
}

int record_find_late(struct plan *plan, bool *there)
{
    TRY(record_find(plan, there));
    const struct tune_operation_record *r = &plan->record;
    const char *asked = plan->flags->set, *set = *there ? r->set : asked;
    if (*there && r->options.order.mode != plan->operation.mode && (r->options.order.mode >= TUNE_ORDER_HALVING ||
                                                                    plan->operation.mode >= TUNE_ORDER_HALVING))
        return tune_error_usage("another sweep has just begun operation %s with another --order; "
                                "give the same --order", r->id);
    if (!set == !asked && (!set || !strcmp(set, asked)))
        return 0;
    return tune_error_usage("another sweep has just begun operation %s with another --set; give "
                            "the same --set", r->id);
}

void record_counts(const struct plan *plan, struct progress *p)
{
    const struct tune_operation_record *r = &plan->record;
    p->measured = r->measured;
    p->failed = r->failed;
    p->invalid = r->invalid;
    p->refused = r->refused;
    p->replayed = r->replayed;
    p->replayed_invalid = r->replayed_invalid;
}

int record_write(const struct plan *plan, const struct progress *p, const char *status)
{
    struct tune_operation_record r = plan->record;
    snprintf(r.status, sizeof r.status, "%s", status);
    r.ended_s = strcmp(status, "running") ? tune_clock_date_s() : 0;
    r.planned = p->planned;
    r.measured = p->measured;
    r.failed = p->failed;
    r.invalid = p->invalid;
    r.refused = p->refused;
    r.replayed = p->replayed;
    r.replayed_invalid = p->replayed_invalid;
    return tune_operation_record_write(plan->store, &r);
}
