/* progress.c - the output of sweep: a line for each job, a status line, header and footer. */
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/print.h"
#include "sweep.h"

/* ---- texts ---- */

void print_text(const char *before, const char *text)
{
    fputs(before, stdout);
    tune_print_line_of(stdout, text);
}

const char *clock_text(double seconds, char text[32])
{
    long n = lround(seconds);
    if (n >= 3600)
        snprintf(text, 32, "%ld:%02ld:%02ld", n / 3600, n / 60 % 60, n % 60);
    else
        snprintf(text, 32, "%ld:%02ld", n / 60, n % 60);
    return text;
}

const char *entity_text(const struct tune_space *space, const struct tune_value *entity,
                        char text[ENTITY_TEXT])
{
    text[0] = 0;
    for (int d = 0; d < space->count; d++) {
        char value[256];
        if (tune_domain_size(&space->dimensions[d].domain) == 1)
            continue;
        tune_value_str(&entity[d], value, sizeof value);
        tune_append_item(text, ENTITY_TEXT, "%s %s", space->names[d], value);
    }
    return text;
}

const char *progress_planned(const struct progress *p, char text[24])
{
    snprintf(text, 24, p->planned > 0 ? "%lld" : "?", (long long)p->planned);
    return text;
}

/* Format the counts. Each measurement of this operation counts once. */
const char *progress_counts(const struct progress *p, char text[96])
{
    snprintf(text, 96, "%lld valid, %lld invalid, %lld failed",
             (long long)(p->measured - p->failed - p->invalid),
             (long long)(p->refused + p->invalid), (long long)p->failed);
    return text;
}

bool progress_none_valid(const struct progress *p)
{
    return p->measured + p->refused + p->replayed + p->not_measurable > 0 && p->measured == p->failed + p->invalid &&
           p->replayed == p->replayed_invalid;
}

/* ---- the status line ---- */

void progress_clear(struct progress *p)
{
    if (p->status_drawn)
        printf("\r\033[K");
    p->status_drawn = false;
}

void progress_log(struct progress *p, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    progress_clear(p);
    print_text("# ", text ? text : format);
    putchar('\n');
    fflush(stdout);
    free(text);
}

/* The number of bytes of whole characters that fit into `columns` columns. */
static int bytes_that_fit(const char *text, int columns)
{
    int n = 0;
    for (int shown = 0; text[n] && (shown += ((unsigned char)text[n] & 0xc0) != 0x80) <= columns;)
        n++;
    return n;
}

void progress_draw(struct progress *p, const char *line)
{
    struct winsize w = {.ws_col = 0};
    if (!p->terminal)
        return;
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
    progress_clear(p); /* only one line can be erased */
    printf("%.*s", bytes_that_fit(line, (w.ws_col > 0 ? w.ws_col : 80) - 1), line);
    fflush(stdout);
    p->status_drawn = true;
}

/* Estimate the remaining seconds; negative: unknown. The estimate uses durations of finished jobs
 * or, before there are any, of rows in the store. Times are proportional to the jobs' weights. */
static double left_s(const struct plan *plan, const struct slots *slots, const struct progress *p)
{
    double weight = p->planned_weight - p->done_weight, left = 0;
    double each = p->measured_weight > 0 ? p->measured_s / p->measured_weight : NAN; /* seconds for a weight of 1 */
    for (int i = 0; i < slots->count; i++)
        if (slots->all[i].busy) {
            const struct slot *slot = &slots->all[i];
            double expected = tune_result_cache_seconds(plan->cache, slot->job.binding, slot->job.inputs);
            double own = weight_of(plan, &slot->job);
            each = isnan(each) ? expected / own : each;
            double rest = (isnan(expected) ? each * own : expected) - (tune_clock_s() - slot->begin_s);
            left += rest > 0 ? rest : 0;
            weight -= own;
        }
    return p->planned == 0 || isnan(each) ? -1 : (left + fmax(weight, 0) * each) / slots_at_a_time(slots);
}

void progress_draw_status(const struct plan *plan, const struct slots *slots, struct progress *p)
{
    char counts[96], eta[32], run[32], planned[24], entity[ENTITY_TEXT] = "", *text = NULL;
    size_t size;
    double left = left_s(plan, slots, p), longest = 0;
    FILE *out = p->terminal ? open_memstream(&text, &size) : NULL;
    if (!out)
        return;
    for (int i = 0; i < slots->count; i++) {
        double s = tune_clock_s() - slots->all[i].begin_s;
        if (!slots->all[i].busy || s < longest)
            continue;
        longest = s;
        entity_text(plan->space, slots->all[i].job.entity, entity);
    }
    fprintf(out, "%lld of %s: %s  for %s%s%s  ", (long long)p->done, progress_planned(p, planned), progress_counts(p, counts),
            clock_text(longest, run), left >= 0 ? "  ETA " : "", left >= 0 ? clock_text(left, eta) : "");
    tune_print_line_of(out, entity);
    fclose(out);
    progress_draw(p, text ? text : "");
    free(text);
}

/* ---- a job ---- */

/* Choose the target for a job's line: tokens/s of the data, else the first with a value. */
static int headline(const struct tune_experiment *e, const double *targets)
{
    int first = tune_experiment_target(e, "dataset_tokens_per_second");
    if (first >= 0 && !isnan(targets[first]))
        return first;
    for (first = 0; first < e->target_count; first++)
        if (!isnan(targets[first]) && strcmp(e->targets[first].name, "is_valid"))
            return first;
    return -1;
}

void progress_job(const struct plan *plan, struct progress *p, const struct tune_job *job,
                  const char *what, double seconds, const double *targets, const char *why)
{
    const struct tune_binding *binding = binding_of(plan, job);
    const struct tune_experiment *e = binding->experiment;
    char entity[ENTITY_TEXT], planned[24], time_text[32] = "";
    progress_clear(p);
    if (seconds > 0)
        snprintf(time_text, sizeof time_text, "%.1f s", seconds);
    printf("%4lld/%-4s %-9s %9s  ", (long long)p->done, progress_planned(p, planned), what,
           time_text);
    int i = targets ? headline(e, targets) : -1;
    if (i >= 0) {
        print_text("", e->targets[i].name);
        printf(" %.5g", targets[i]);
        print_text(*e->targets[i].unit ? " " : "", e->targets[i].unit);
        printf("  ");
    }
    print_text("", entity_text(plan->space, job->entity, entity));
    if (plan->space->reference_count > 1)
        print_text("  ", binding->identifier);
    if (binding->budget >= 0)
        printf("  %s %g", e->names[binding->budget], weight_of(plan, job));
    if (plan->flags->repeat > 1 || plan->record.options.repeat > 1)
        printf("  repeat %d", job->repeat);
    if (*why)
        print_text("  ", why);
    printf("\n");
    if ((fflush(stdout) != 0 || ferror(stdout)) && !is_stopped(plan))
        *plan->flags->tune.stop_signal = SIGPIPE; /* the output is closed: stop as after a signal */
}

void progress_count_failure(struct progress *p, const struct tune_result *result, int most)
{
    if (result->status == TUNE_VALID)
        p->same_failures = 0;
    if (result->status != TUNE_FAILED)
        return;
    p->same_failures = strcmp(result->how, p->how_failed) ? 1 : p->same_failures + 1;
    memcpy(p->how_failed, result->how, sizeof p->how_failed);
    if (p->same_failures != most || p->halted)
        return;
    p->halted = true;
    progress_log(p, "%d failed in a row   %s", most, p->how_failed);
    progress_log(p, "no more measurements are started; remove the cause, and go on with --resume "
                    "(--max-failures 0: no such limit)");
}

/* ---- header and footer ---- */

void progress_header(const struct plan *plan, const struct slots *slots, struct progress *p,
                     const struct rungs *rungs)
{
    char text[48];
    const struct tune_order_options *order = &plan->record.options.order;
    const struct tune_space *space = plan->space;
    progress_log(p, "operation           %s", plan->record.id);
    progress_log(p, "space               %s, %s entities, %d experiment%s", plan->record.space,
                 space->size ? tune_index_text(space->size, text) : "uncountable", space->reference_count,
                 space->reference_count == 1 ? "" : "s");
    for (int i = 0; i < space->reference_count; i++)
        if (plan->bindings[i].supported)
            progress_log(p, "experiment          %s, build %.12s", plan->bindings[i].full_identifier,
                         plan->provenance->programs[i].build);
        else
            progress_log(p, "experiment          %s, without a program on this machine",
                         plan->bindings[i].full_identifier);
    int cores = slots->all[0].cpu_count;
    bool listed = plan->point_count > 0 && order->mode == TUNE_ORDER_SEQUENTIAL;
    progress_log(p, "order               %s, seed %lld, %d at a time on %d core%s each", listed ? "of the list" : tune_order_name(order->mode),
                 (long long)order->seed, slots->on_cpu, cores, cores == 1 ? "" : "s");
    if (plan->machine.gpu_count > 0)
        progress_log(p, "on GPUs             %d at a time, each on its own GPU, of %d",
                     slots->count - slots->on_cpu,
                     plan->machine.gpu_count);
    halving_print(rungs, p->planned_weight);
    model_print(plan);
    progress_log(p, "host class          %s", plan->machine.host_class);
    progress_log(p, "store               %s", plan->flags->store);
}

/* Print an argument of a suggested command. */
static void print_argument(const char *before, const char *word)
{
    fputs(before, stdout);
    tune_print_word(stdout, word);
}

/* Suggest a command for each experiment. With --set, results are not shown under the space. */
static void print_rows_commands(const struct plan *plan)
{
    char where[512];
    const struct tune_value id = tune_value_text(plan->record.id);
    int n = snprintf(where, sizeof where, "operation == ");
    tune_value_json(&id, where + n, sizeof where - (size_t)n);
    for (int i = 0; i < plan->space->reference_count; i++)
        if (tune_binding_is_first(plan->bindings, i)) {
            print_argument("# look at them        samples show ", plan->bindings[i].experiment->name);
            print_argument(" --where ", where);
            print_argument(" --store ", plan->flags->store);
            putchar('\n');
        }
}

static void print_best_options(const struct tune_operation_record *r)
{
    if (r->maximize)
        print_argument(" --maximize ", r->maximize);
    if (r->minimize)
        print_argument(" --minimize ", r->minimize);
    if (r->where_target)
        print_argument(" --where ", r->where_target);
    print_argument(" --operation ", r->id);
}

/* Suggest the next command. */
static void print_next(const struct plan *plan, bool stopped)
{
    const struct tune_operation_record *r = &plan->record;
    if (!stopped && r->set) {
        print_rows_commands(plan);
        return;
    }
    if (stopped) {
        print_argument("# go on with          sweep --resume ", r->id);
    } else if (r->budget) {
        print_argument("# look at the last    samples best ", plan->space_file);
        print_argument(" --operation ", r->id);
        print_argument(r->minimize ? " --minimize " : " --maximize ", r->minimize ? r->minimize : r->maximize);
    } else if (r->options.order.mode == TUNE_ORDER_MODEL) {
        print_argument("# look at the best    samples best ", plan->space_file);
        print_best_options(r);
    } else {
        print_argument("# look at them        samples show ", plan->space_file);
        if (r->until_stable > 0)
            print_argument(" --operation ", r->id);
    }
    print_argument(" --store ", plan->flags->store);
    putchar('\n');
}

int progress_summary(const struct plan *plan, struct progress *p, bool stopped)
{
    char text[32], counts[96];
    progress_log(p, "%-19s %s, %lld known; %s", stopped ? "stopped" : "finished", progress_counts(p, counts), (long long)p->replayed,
                 clock_text(tune_clock_s() - p->begin_s, text));
    if (p->not_measurable > 0)
        progress_log(p, "unknown             %lld: the store has no row of them, and they cannot run here",
                     (long long)p->not_measurable);
    TRY(unused_print(plan, p, p->measured));
    print_next(plan, stopped);
    return 0;
}
