/* task_load.c - the tasks that a list of files names; groups with their members by name and tag. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "evaluators/tasks/parts.h"

/* The task files of a folder: what each is called, and its tags. */
struct folder {
    char path[TUNE_PATH_MAX];
    struct shelf {
        char *path;
        struct task_config config;
        const char *task, *group; /* NULL: none */
    } *files;
    size_t count, room;
    char unread[512];             /* why a file could not be read; "": all could */
    int unread_count;
};

static int load(struct tune_tasks *all, struct folder *in, struct task_config *config, int parent, int depth, int64_t shots);

/* ---- what a file is ---- */
static const char *name_in(const struct task_config *c, const char *key)
{
    const struct task_entry *e = tune_task_config_get(c, key);
    return e && e->node->type == TUNE_NODE_SCALAR && e->node->value.type == TUNE_VALUE_TEXT ? e->node->value.text : NULL;
}

static bool is_group(const struct task_config *c)
{
    const struct task_entry *task = tune_task_config_get(c, "task");
    return name_in(c, "group") && task && task->node->type == TUNE_NODE_LIST;
}

static bool has_tag(const struct task_config *c, const char *tag)
{
    const struct task_entry *e = tune_task_config_get(c, "tag");
    for (int i = 0; e && e->node->type == TUNE_NODE_LIST && i < e->node->count; i++)
        if (e->node->items[i]->type == TUNE_NODE_SCALAR && e->node->items[i]->value.type == TUNE_VALUE_TEXT &&
            !strcmp(e->node->items[i]->value.text, tag))
            return true;
    const char *one = name_in(c, "tag");
    return one && !strcmp(one, tag);
}

/* ---- a folder ---- */
static void free_folder(struct folder *in)
{
    for (size_t i = 0; i < in->count; i++) {
        free(in->files[i].path);
        tune_task_config_free(&in->files[i].config);
    }
    free(in->files);
}

static int add_file(struct folder *in, const char *name)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/%s", in->path, name));
    TRY(tune_array_reserve(&in->files, &in->room, in->count + 1, sizeof *in->files, "task files"));
    struct shelf *s = &in->files[in->count];
    *s = (struct shelf){.path = strdup(path)};
    if (!s->path)
        return tune_error_no_memory("task files");
    in->count++;
    if (tune_task_config_read(&s->config, path) < 0) {
        if (tune_error_kind() == TUNE_ERROR_CANNOT)
            return -1;
        if (in->unread_count++ == 0)
            snprintf(in->unread, sizeof in->unread, "%s", tune_error_message());
        tune_task_config_free(&s->config);
        return 0;
    }
    s->group = is_group(&s->config) ? name_in(&s->config, "group") : NULL;
    s->task = s->group ? NULL : name_in(&s->config, "task");
    return 0;
}

static int read_folder(struct folder *in, const char *beside)
{
    TRY(tune_file_parent(in->path, beside));
    DIR *folder = opendir(in->path);
    int status = folder ? 0 : tune_error_set("%s: cannot list the folder, in which the tasks of %s are looked for", in->path, beside);
    for (struct dirent *e; status == 0 && (e = readdir(folder));) {
        size_t size = strlen(e->d_name);
        if ((size > 5 && !strcmp(e->d_name + size - 5, ".yaml")) || (size > 4 && !strcmp(e->d_name + size - 4, ".yml")))
            status = add_file(in, e->d_name);
    }
    if (folder)
        closedir(folder);
    return status;
}

/* ---- tasks ---- */
static int add_order(struct tune_tasks *all, bool task, int place)
{
    size_t room = all->order_room;
    TRY(tune_array_reserve(&all->order, &room, (size_t)all->order_count + 1, sizeof *all->order, "tasks"));
    all->order_room = room;
    all->order[all->order_count].task = task;
    all->order[all->order_count++].place = place;
    return 0;
}

static int add_task(struct tune_tasks *all, struct task_config *config, int parent, int64_t shots)
{
    TRY(tune_array_reserve(&all->tasks, &all->room, (size_t)all->count + 1, sizeof *all->tasks, "tasks"));
    struct task *t = &all->tasks[all->count];
    memset(t, 0, sizeof *t);
    all->count++;
    TRY(tune_task_read(t, config, shots));
    t->group = parent;
    for (int i = 0; i + 1 < all->count; i++)
        if (!strcmp(all->tasks[i].name, t->name))
            return tune_error_usage("%s: the task %s is there twice; the other is %s", t->path, t->name, all->tasks[i].path);
    return add_order(all, true, all->count - 1);
}

/* ---- groups ---- */
static int read_mean(struct task_group *g, const struct task_entry *e, const struct tune_node *node)
{
    const struct tune_node *metric = tune_node_get(node, "metric"), *how = tune_node_get(node, "aggregation"),
                           *by_size = tune_node_get(node, "weight_by_size"), *filters = tune_node_get(node, "filter_list");
    int kind = 0, place = g->mean_count;
    TRY(tune_document_map(e->document, node, "an entry of aggregate_metric_list", "metric|aggregation|weight_by_size|filter_list"));
    if (tune_node_none(metric) || metric->type != TUNE_NODE_SCALAR || metric->value.type != TUNE_VALUE_TEXT)
        return tune_document_fail(e->document, node, "aggregate_metric_list: expected a metric");
    while (kind < TASK_METRIC_KINDS && strcmp(tune_task_metrics[kind].name, metric->value.text) != 0)
        kind++;
    if (kind == TASK_METRIC_KINDS || (how && (how->function || how->value.type != TUNE_VALUE_TEXT || strcmp(how->value.text, "mean") != 0)))
        return tune_document_fail(e->document, kind == TASK_METRIC_KINDS ? metric : how, "aggregate_metric_list: %s is not known here",
                                  kind == TASK_METRIC_KINDS ? metric->value.text : "this aggregation");
    if (by_size && by_size->value.type != TUNE_VALUE_BOOL)
        return tune_document_fail(e->document, by_size, "weight_by_size: expected true or false");
    g->means[place].kind = kind;
    g->means[place].by_size = !by_size || by_size->value.boolean;
    if (!tune_node_none(filters)) {
        const struct tune_node *const *items = filters->type == TUNE_NODE_LIST ? filters->items : &filters;
        int count = filters->type == TUNE_NODE_LIST ? filters->count : 1;
        for (int i = 0; i < count; i++) {
            if (count > TASK_FILTERS || items[i]->type != TUNE_NODE_SCALAR || items[i]->value.type != TUNE_VALUE_TEXT)
                return tune_document_fail(e->document, items[i], "filter_list: expected at most %d names", TASK_FILTERS);
            g->means[place].filters[g->means[place].filter_count++] = items[i]->value.text;
        }
    }
    g->mean_count++;
    return 0;
}

static int read_group(struct task_group *g)
{
    static const char known[] = "group|group_alias|task|aggregate_metric_list|metadata|tag";
    const struct task_entry *e, *means = tune_task_config_get(&g->config, "aggregate_metric_list");
    g->name = g->alias = name_in(&g->config, "group");
    g->version = "N/A";
    if (name_in(&g->config, "group_alias"))
        g->alias = name_in(&g->config, "group_alias");
    for (int i = 0; i < g->config.count; i++) {
        char key[64];
        snprintf(key, sizeof key, "|%.60s|", g->config.entries[i].key);
        char all[sizeof known + 2];
        snprintf(all, sizeof all, "|%s|", known);
        if (!strstr(all, key))
            return tune_task_entry_fail(&g->config.entries[i], "the key %s is not read here in a group; write it into its tasks", g->config.entries[i].key);
    }
    if ((e = tune_task_config_get(&g->config, "metadata"))) {
        const struct tune_node *version = tune_node_get(e->node, "version");
        if (!tune_node_none(version) && version->type == TUNE_NODE_SCALAR)
            g->version = version->value.type == TUNE_VALUE_TEXT ? version->value.text : version->written;
    }
    if (!means)
        return 0;
    const struct tune_node *const *items = means->node->type == TUNE_NODE_LIST ? means->node->items : &means->node;
    int count = means->node->type == TUNE_NODE_LIST ? means->node->count : 1;
    for (int i = 0; i < count; i++) {
        if (g->mean_count == TASK_METRICS)
            return tune_task_entry_fail(means, "aggregate_metric_list: more than %d metrics", TASK_METRICS);
        TRY(read_mean(g, means, items[i]));
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct shelf *const *)a)->task, (*(struct shelf *const *)b)->task);
}

/* A member of a group: a group or task of that name, or the tasks with that tag, by name. */
static int load_member(struct tune_tasks *all, struct folder *in, const struct task_entry *e, const struct tune_node *node, int group, int depth,
                       int64_t shots)
{
    struct shelf **found = tune_zeroed(in->count + 1, sizeof *found, "task files");
    size_t count = 0;
    int status = 0;
    TRY(found ? 0 : -1);
    if (node->type != TUNE_NODE_SCALAR || node->value.type != TUNE_VALUE_TEXT) {
        free(found);
        return tune_document_fail(e->document, node, "task: expected the names of tasks, groups or tags; tasks that are changed or defined in a "
                                  "group are not read here, so write each into a file of its own");
    }
    const char *name = node->value.text;
    for (size_t i = 0; i < in->count && count == 0; i++)
        if ((in->files[i].task && !strcmp(in->files[i].task, name)) || (in->files[i].group && !strcmp(in->files[i].group, name)))
            found[count++] = &in->files[i];
    for (size_t i = 0; i < in->count && (count == 0 || !found[0]->group) ; i++)
        if (in->files[i].task && strcmp(in->files[i].task, name) != 0 && has_tag(&in->files[i].config, name))
            found[count++] = &in->files[i];
    if (count > 1)
        qsort(found, count, sizeof *found, by_name);
    if (count == 0)
        status = tune_document_fail(e->document, node, "%s: no task, group or tag in the %zu task files of %s has this name%s%s", name, in->count,
                                    in->path, in->unread_count ? "; one could not be read: " : "", in->unread);
    for (size_t i = 0; i < count && status == 0; i++) {
        struct task_config config;
        status = tune_task_config_read(&config, found[i]->path);
        if (status == 0)
            status = load(all, in, &config, group, depth + 1, shots);
        tune_task_config_free(&config);
    }
    free(found);
    return status;
}

static int load_group(struct tune_tasks *all, struct folder *in, struct task_config *config, int parent, int depth, int64_t shots)
{
    TRY(tune_array_reserve(&all->groups, &all->group_room, (size_t)all->group_count + 1, sizeof *all->groups, "tasks"));
    int place = all->group_count++;
    struct task_group *g = &all->groups[place];
    memset(g, 0, sizeof *g);
    g->config = *config;
    *config = (struct task_config){0};
    g->parent = parent;
    TRY(read_group(g));
    if (depth == TASK_DEEP)
        return tune_error_usage("%s: groups are nested more than %d deep; perhaps one has itself as a member", g->name, TASK_DEEP);
    TRY(add_order(all, false, place));
    const struct task_entry tasks = *tune_task_config_get(&g->config, "task"); /* the list of groups may move */
    for (int i = 0; i < tasks.node->count; i++)
        TRY(load_member(all, in, &tasks, tasks.node->items[i], place, depth, shots));
    return 0;
}

static int load(struct tune_tasks *all, struct folder *in, struct task_config *config, int parent, int depth, int64_t shots)
{
    return is_group(config) ? load_group(all, in, config, parent, depth, shots) : add_task(all, config, parent, shots);
}

int tune_tasks_load(struct tune_tasks *all, const char *paths, int64_t shots)
{
    char path[TUNE_PATH_MAX];
    int more, status = 0;
    for (int i = 0; status == 0 && (more = tune_path_listed(paths, i, path)) != 0; i++) {
        struct task_config config = {0};
        struct folder in = {0};
        if (more < 0)
            return -1;
        if (!tune_file_exists(path))
            return tune_error_usage("there is no task file %s. Expected a YAML file of lm-evaluation-harness, such as arc_easy.yaml", path);
        status = tune_task_config_read(&config, path);
        if (status == 0 && is_group(&config))
            status = read_folder(&in, path);
        if (status == 0)
            status = load(all, &in, &config, -1, 0, shots);
        tune_task_config_free(&config);
        free_folder(&in);
    }
    return status == 0 && all->count == 0 ? tune_error_usage("no task files are named") : status;
}
