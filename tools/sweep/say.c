/* say.c - the output of sweep: a line for each job, a status line, header and footer. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/print.h"
#include "sweep.h"

void sweep_print(const char *before, const char *text)
{
    fputs(before, stdout);
    tune_print_line_of(stdout, text);
}

void sweep_clear_status(void)
{
    if (sweep.status_drawn)
        printf("\r\033[K");
    sweep.status_drawn = false;
}

const char *sweep_clock_text(double seconds, char text[32])
{
    long n = lround(seconds);
    if (n >= 3600)
        snprintf(text, 32, "%ld:%02ld:%02ld", n / 3600, n / 60 % 60, n % 60);
    else
        snprintf(text, 32, "%ld:%02ld", n / 60, n % 60);
    return text;
}

/* Print the dimensions that vary. */
static void entity_text(const struct tune_value *entity, char *text, size_t size)
{
    size_t at = 0;
    text[0] = 0;
    for (int d = 0; d < sweep.space->count; d++) {
        char value[256];
        if (tune_domain_size(&sweep.space->dimensions[d].domain) == 1)
            continue;
        tune_value_str(&entity[d], value, sizeof value);
        int n = snprintf(text + at, size - at, "%s%s %s", at ? ", " : "", sweep.space->names[d], value);
        if (n < 0 || (size_t)n >= size - at)
            break;
        at += (size_t)n;
    }
}

void sweep_print_entity(const struct tune_value *entity)
{
    char text[512];
    entity_text(entity, text, sizeof text);
    tune_print_line_of(stdout, text);
}

/* Estimated time left, in seconds. It uses the durations of finished jobs, or before that the
 * store's, in proportion to the jobs' weights. Negative: unknown. */
static double left_s(void)
{
    double weight = sweep.planned_weight - sweep.done_weight, left = 0;
    double each = sweep.measured_weight > 0 ? sweep.measured_s / sweep.measured_weight : NAN; /* for a weight of 1 */
    for (int i = 0; i < sweep.slot_count; i++)
        if (sweep.slots[i].busy) {
            const struct slot *slot = &sweep.slots[i];
            double known = tune_known_seconds(sweep.known, slot->job.protocol, slot->job.inputs), own = sweep_weight(&slot->job);
            each = isnan(each) ? known / own : each;
            double rest = (isnan(known) ? each * own : known) - (tune_clock_s() - slot->begin_s);
            left += rest > 0 ? rest : 0;
            weight -= own;
        }
    return sweep.record.planned == 0 || isnan(each) ? -1 : (left + fmax(weight, 0) * each) / sweep_at_a_time();
}

/* The number of bytes that fit into that many columns, in whole characters. */
static int fitting(const char *text, int columns)
{
    int n = 0;
    for (int shown = 0; text[n] && (shown += ((unsigned char)text[n] & 0xc0) != 0x80) <= columns;)
        n++;
    return n;
}

/* The number of jobs as text; "?": unknown. */
const char *sweep_planned_text(char text[24])
{
    snprintf(text, 24, sweep.record.planned > 0 ? "%lld" : "?", (long long)sweep.record.planned);
    return text;
}

/* Each measurement of this operation counts once. */
const char *sweep_counts_text(char text[96])
{
    const struct tune_operation_record *r = &sweep.record;
    snprintf(text, 96, "%lld valid, %lld invalid, %lld failed", (long long)(r->measured - r->failed - r->invalid),
             (long long)(r->refused + r->invalid), (long long)r->failed);
    return text;
}

bool sweep_none_valid(void)
{
    const struct tune_operation_record *r = &sweep.record;
    return r->measured + r->refused + r->replayed + sweep.hopeless > 0 && r->measured == r->failed + r->invalid && r->replayed == r->replayed_invalid;
}

void sweep_draw_line(const char *line)
{
    struct winsize w = {.ws_col = 0};
    if (!sweep.terminal)
        return;
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
    sweep_clear_status(); /* the terminal can only erase one line */
    printf("%.*s", fitting(line, (w.ws_col > 0 ? w.ws_col : 80) - 1), line);
    fflush(stdout);
    sweep.status_drawn = true;
}

void sweep_draw_status(void)
{
    char counts[96], eta[32], run[32], planned[24], entity[256] = "", *text = NULL;
    size_t size;
    double left = left_s(), longest = 0;
    FILE *out = sweep.terminal ? open_memstream(&text, &size) : NULL;
    if (!out)
        return;
    for (int i = 0; i < sweep.slot_count; i++)
        if (sweep.slots[i].busy && tune_clock_s() - sweep.slots[i].begin_s >= longest) {
            longest = tune_clock_s() - sweep.slots[i].begin_s;
            entity_text(sweep.slots[i].job.entity, entity, sizeof entity);
        }
    fprintf(out, "%lld of %s: %s  for %s%s%s  ", (long long)sweep.done, sweep_planned_text(planned), sweep_counts_text(counts),
            sweep_clock_text(longest, run),
            left >= 0 ? "  ETA " : "", left >= 0 ? sweep_clock_text(left, eta) : "");
    tune_print_line_of(out, entity);
    fclose(out);
    sweep_draw_line(text ? text : "");
    free(text);
}

/* Choose the target for the line: tokens/s of the data, else the first with a value. */
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

void sweep_tell(const struct tune_job *job, const char *what, double seconds, const double *targets, const char *why)
{
    const struct tune_experiment *e = sweep.protocols[job->protocol].experiment;
    char entity[512], planned[24], time_text[32] = "";
    entity_text(job->entity, entity, sizeof entity);
    sweep_clear_status();
    if (seconds > 0)
        snprintf(time_text, sizeof time_text, "%.1f s", seconds);
    printf("%4lld/%-4s %-9s %9s  ", (long long)sweep.done, sweep_planned_text(planned), what, time_text);
    int i = targets ? headline(e, targets) : -1;
    if (i >= 0) {
        sweep_print("", e->targets[i].name);
        printf(" %.5g", targets[i]);
        sweep_print(*e->targets[i].unit ? " " : "", e->targets[i].unit);
        printf("  ");
    }
    tune_print_line_of(stdout, entity);
    if (sweep.space->reference_count > 1)
        sweep_print("  ", sweep.protocols[job->protocol].identifier);
    sweep_say_rung(job);
    if (my.repeat > 1 || sweep.record.options.repeat > 1)
        printf("  repeat %d", job->repeat);
    if (why && *why)
        sweep_print("  ", why);
    printf("\n");
    if ((fflush(stdout) != 0 || ferror(stdout)) && !*my.tune.stop_signal)
        *my.tune.stop_signal = SIGPIPE; /* no output any more: stop as after a signal */
}

void sweep_header(void)
{
    char text[48];
    printf("# operation           %s\n", sweep.record.id);
    printf("# space               %s, %s entities, %d experiment%s\n", sweep.record.space,
           sweep.space->size ? tune_index_text(sweep.space->size, text) : "uncountable", sweep.space->reference_count,
           sweep.space->reference_count == 1 ? "" : "s");
    for (int p = 0; p < sweep.space->reference_count; p++) {
        sweep_print("# experiment          ", sweep.protocols[p].full_identifier);
        if (sweep.protocols[p].supported)
            printf(", build %.12s\n", sweep.programs[p].build);
        else
            puts(", which nothing here measures");
    }
    int cores = sweep.slots[0].cpu_count;
    printf("# order               %s, seed %lld, %d at a time on %d core%s each\n",
           tune_order_name(sweep.record.options.order.mode), (long long)sweep.record.options.order.seed, sweep.cpu_slots, cores,
           cores == 1 ? "" : "s");
    if (sweep.gpu_count > 0)
        printf("# on GPUs             %d at a time, each on a GPU of its own, of %d\n", sweep.slot_count - sweep.cpu_slots, sweep.gpu_count);
    sweep_say_halving();
    printf("# host class          %s\n", sweep.host_class);
    printf("# store               %s\n", my.store);
    fflush(stdout);
}

/* Print further arguments for another command on the same space. */
static void say_word(const char *before, const char *word)
{
    fputs(before, stdout);
    tune_print_word(stdout, word);
}

/* The line to type next. A space does not show what was measured with --set. */
static void say_next(int stopped)
{
    const struct tune_operation_record *r = &sweep.record;
    char where[512], stable[48];
    const struct tune_value id = tune_value_text(r->id);
    int n = snprintf(where, sizeof where, "operation == ");
    tune_value_json(&id, where + n, sizeof where - (size_t)n);
    snprintf(stable, sizeof stable, "%g", r->until_stable);
    if (!stopped && r->set) { /* a line for each experiment */
        for (int i = 0, k; i < sweep.space->reference_count; i++) {
            for (k = 0; k < i && sweep.protocols[k].experiment != sweep.protocols[i].experiment;)
                k++;
            if (k < i)
                continue;
            say_word("# look at them        samples rows ", sweep.protocols[i].experiment->name);
            say_word(" --where ", where);
            say_word(" --store ", my.store);
            putchar('\n');
        }
        return;
    }
    if (stopped) {
        say_word("# go on with          sweep --resume ", r->id);
    } else if (r->budget) {
        say_word("# look at the last    samples best ", my.space);
        say_word(" --operation ", r->id);
        say_word(r->minimize ? " --minimize " : " --maximize ", r->minimize ? r->minimize : r->maximize);
    } else {
        say_word("# look at them        samples show ", my.space);
    }
    say_word(" --store ", my.store);
    if (!stopped && r->until_stable > 0)
        say_word(" --until-stable ", stable);
    putchar('\n');
}

int sweep_summary(int stopped)
{
    char text[32], counts[96];
    sweep_clear_status();
    printf("# %-19s %s, %lld known; %s\n", stopped ? "stopped" : "finished", sweep_counts_text(counts), (long long)sweep.record.replayed,
           sweep_clock_text(tune_clock_s() - sweep.begin_s, text));
    if (sweep.hopeless > 0)
        printf("# unknown             %lld: no row is stored, and nothing here measures them\n", (long long)sweep.hopeless);
    TRY(sweep_say_unused(sweep.record.measured));
    say_next(stopped);
    return 0;
}
