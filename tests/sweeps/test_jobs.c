/* test_jobs.c - what an operation has to do: which entities in which order, what of it is known, what it has done before. */
#include "test.h"

#include "sweeps/discovery/results.h"

/* Under a sanitizer: the HDF5 library loses some bytes of its own whenever it refuses a file. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

#define INPUT(name, more) "{\"identifier\": \"" name "\", " more ", \"domain\": {\"domainRange\": [0, 10000000], \"interval\": 1}}"
static const char both[] = "{\"identifier\": \"both\", \"actuator\": \"x\", \"program\": \"p\", \"output\": null, \"inputs\": ["
                           INPUT("a", "\"required\": true") ", " INPUT("b", "\"default\": 0") "], \"targets\": [{\"identifier\": \"t\"}]}";
static const char only[] = "{\"identifier\": \"only\", \"actuator\": \"x\", \"program\": \"p\", \"output\": null, \"inputs\": ["
                           INPUT("a", "\"required\": true") "], \"targets\": [{\"identifier\": \"t\"}]}";

#define SPACE(a, b) "entitySpace: [{identifier: a, propertyDomain: {values: [" a "]}}, {identifier: b, propertyDomain: {values: [" b "]}}]\n"
#define BOTH "experiments: [{actuatorIdentifier: x, experimentIdentifier: both}]\n"
static const char nine[] = SPACE("1, 2, 3", "1, 2, 3") BOTH;

/* One process at work on an operation: a space over the store. */
struct work {
    struct tune_catalog catalog;
    struct tune_space *space;
    struct tune_binding *bindings;
    struct tune_store *store;
    struct tune_result_cache *cache;
    struct tune_jobs *jobs;
    struct tune_results results;
};

static int provenance_of(void *context, const struct tune_binding *p, const struct tune_value *inputs, struct tune_provenance *provenance)
{
    (void)context, (void)p, (void)inputs;
    *provenance = (struct tune_provenance){.host_class = "host", .build = "build"};
    return 0;
}

/* o: what is asked; NULL jobs where it is refused. */
static struct work begin(const char *store, const char *yaml, const char *operation, struct tune_jobs_options o)
{
    struct work w = {0};
    const char *paths[] = {"experiments"};
    struct tune_document *d = tune_document_parse("s.yaml", yaml, strlen(yaml), false);
    assert_got(d);
    assert_got(w.space = tune_space_parse(d));
    assert_ok(tune_catalog_read(&w.catalog, paths, 1));
    assert_ok(tune_space_bind(w.space, &w.catalog, &w.bindings));
    assert_got(w.store = tune_store_open(store, true));
    w.results = (struct tune_results){w.store, w.space, w.bindings, operation, "space-000000", "g", "host"};
    assert_ok(tune_results_announce(&w.results));
    assert_got(w.cache = tune_result_cache_read(w.store, w.bindings, w.space->reference_count, operation));
    o.space = w.space;
    o.bindings = w.bindings;
    o.count = w.space->reference_count;
    o.cache = w.cache;
    o.provenance = provenance_of;
    o.repeat = o.repeat ? o.repeat : 1;
    o.memoize = true;
    w.jobs = tune_jobs_new(&o);
    return w;
}

static void end(struct work *w)
{
    tune_jobs_free(w->jobs);
    tune_result_cache_free(w->cache);
    tune_store_free(w->store);
    tune_bindings_free(w->bindings, w->space->reference_count);
    tune_catalog_free(&w->catalog);
    tune_space_free(w->space);
}

static void record(struct work *w, const struct tune_job *job, enum tune_status status, bool last)
{
    double target = 1;
    const struct tune_result result = {.status = status, .targets = &target, .started_s = 1e9, .seconds = 1, .run = 1};
    uint8_t uid[16];
    if (job->kind == TUNE_JOB_REPLAY)
        assert_ok(tune_results_replayed(&w->results, job));
    else if (job->kind == TUNE_JOB_RUN)
        assert_ok(tune_results_measured(&w->results, job, &result, last, uid));
}

/* The next jobs, at most so many, done and told: "11 run, 12 known, 13 done" for a and b (and the experiment, where there are two).
 * Static, for two at a time. */
static const char *next(struct work *w, int most)
{
    static const char *const kinds[] = {"run", "known", "refused", "done"};
    static char texts[2][4096];
    static int which;
    char *text = texts[which = !which], *at = text;
    struct tune_job job;
    int more;
    *text = 0;
    assert_got(w->jobs);
    for (; most > 0 && (more = tune_jobs_next(w->jobs, &job)) != 0; most--) {
        assert_ok(more);
        at += sprintf(at, "%s%d%d%s %s", at > text ? ", " : "", (int)job.entity[0].integer, (int)job.entity[1].integer,
                      w->space->reference_count == 1 ? "" : job.binding ? " second" : " first", kinds[job.kind]);
        record(w, &job, TUNE_VALID, true);
        tune_job_free(&job);
    }
    return text;
}

/* All of it, by a process of its own. */
static const char *all(const char *store, const char *yaml, const char *operation, struct tune_jobs_options o)
{
    struct work w = begin(store, yaml, operation, o);
    const char *text = next(&w, 1000);
    end(&w);
    return text;
}

static struct tune_jobs_options ask(enum tune_order_mode mode, uint64_t seed, int64_t limit)
{
    return (struct tune_jobs_options){.order = {.mode = mode, .seed = seed, .limit = limit}};
}

/* ---- orders of a selector ---- */

/* The entities of "31 known, 22 known" put together by their a: groups in first-seen order. */
static const char *together(const char *list)
{
    static char text[4096];
    char seen[64] = "", *at = text;
    for (const char *g = list; g; g = strchr(g, ',') ? strchr(g, ',') + 2 : NULL) {
        if (strchr(seen, *g))
            continue;
        sprintf(seen + strlen(seen), "%c", *g);
        for (const char *e = g; e; e = strchr(e, ',') ? strchr(e, ',') + 2 : NULL)
            if (*e == *g)
                at += sprintf(at, "%s%.2s known", at > text ? ", " : "", e);
    }
    return text;
}

static struct tune_jobs_options selected(enum tune_order_mode mode, uint64_t seed, const char *by)
{
    static const char *grouping[1];
    struct tune_jobs_options o = ask(mode, seed, -1);
    grouping[0] = by;
    o.selector = true;
    o.order.grouping = grouping;
    o.order.group_count = by != NULL;
    return o;
}

static void selectors(void **state)
{
    char drawn[4096], operation[32];
    enum tune_order_mode mode;
    bool firsts[4] = {false}, members = false;
    (void)state;
    snprintf(drawn, sizeof drawn, "%s", all("sel", nine, "first", ask(TUNE_ORDER_RANDOM, 5, 7)));
    for (char *c = drawn; (c = strstr(c, "run"));) /* as they are from now on */
        memmove(c + 5, c + 3, strlen(c + 3) + 1), memcpy(c, "known", 5);
    assert_string_not_equal(drawn, together(drawn)); /* or it would show nothing */
    assert_string_equal(all("sel", nine, "s", selected(TUNE_ORDER_SEQUENTIAL, 0, NULL)), drawn);
    assert_ok(tune_order_mode("sequentialgrouped", &mode));
    assert_string_equal(all("sel", nine, "sg", selected(mode, 0, "a")), together(drawn));
    assert_ok(tune_order_mode("random-grouped", &mode));
    for (int seed = 0; seed < 30; seed++) {
        char got[4096];
        snprintf(operation, sizeof operation, "rg%d", seed);
        snprintf(got, sizeof got, "%s", all("sel", nine, operation, selected(mode, (uint64_t)seed, "a")));
        assert_string_equal(got, together(got)); /* groups stay together ... */
        for (char *a = drawn; a; a = strchr(a, ',') ? strchr(a, ',') + 2 : NULL)
            for (char *b = a + 3; (b = strchr(b, ',')) && (b += 2);)
                if (*a == *b) { /* ... their members in order ... */
                    char x[3] = {a[0], a[1]}, y[3] = {b[0], b[1]};
                    assert_true(strstr(got, x) < strstr(got, y));
                    members = true;
                }
        firsts[*got - '0'] = true; /* ... and each comes first for some seed */
        if (seed % 10 == 0) {
            strcat(operation, "again");
            assert_string_equal(all("sel", nine, operation, selected(mode, (uint64_t)seed, "a")), got);
        }
    }
    assert_true(members && firsts[1] && firsts[2] && firsts[3]);
    snprintf(drawn, sizeof drawn, "%s", all("sel", nine, "r1", selected(TUNE_ORDER_RANDOM, 1, NULL)));
    assert_string_equal(all("sel", nine, "r2", selected(TUNE_ORDER_RANDOM, 1, NULL)), drawn);
    assert_string_not_equal(all("sel", nine, "r3", selected(TUNE_ORDER_RANDOM, 2, NULL)), drawn);
}

static void refused(const char *message, struct tune_jobs_options o)
{
    struct work w = begin("sel", nine, "no", o);
    assert_null(w.jobs);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has(message);
    end(&w);
}

static void refusals(void **state)
{
    (void)state;
    refused("needs the names of the dimensions to group by", selected(TUNE_ORDER_RANDOM_GROUPED, 0, NULL));
    refused("no dimension \"c\" to group by", selected(TUNE_ORDER_SEQUENTIAL_GROUPED, 0, "c"));
    refused("makes no groups", selected(TUNE_ORDER_RANDOM, 0, "a"));
    refused("not sobol", selected(TUNE_ORDER_SOBOL, 0, NULL));
    static const char large[] = "entitySpace:\n- {identifier: a, propertyDomain: {domainRange: [0, 1000000], interval: 1}}\n"
                                "- {identifier: b, propertyDomain: {domainRange: [0, 1001], interval: 1}}\n" BOTH;
    struct work w = begin("sel", large, "no", ask(TUNE_ORDER_SEQUENTIAL, 0, -1));
    assert_null(w.jobs);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has("s.yaml:2:3: the space has 1001000000 entities, too many to measure all");
    end(&w);
}

/* ---- operations that go on ---- */

/* What was measured by itself no longer passes the filter, and counts all the same. */
static void filtered(void **state)
{
    struct tune_jobs_options o = ask(TUNE_ORDER_SEQUENTIAL, 0, 4);
    (void)state;
    assert_string_equal(all("fil", SPACE("1", "2") BOTH, "before", ask(TUNE_ORDER_SEQUENTIAL, 0, -1)), "12 run");
    o.filter = TUNE_FILTER_UNMEASURED;
    struct work w = begin("fil", nine, "x", o);
    assert_string_equal(next(&w, 2), "11 run, 13 run");
    end(&w);
    assert_string_equal(all("fil", nine, "x", o), "11 done, 13 done, 21 run, 22 run");
    assert_string_equal(all("fil", nine, "x", o), "11 done, 13 done, 21 done, 22 done");
    o.filter = TUNE_FILTER_MEASURED;
    assert_string_equal(all("fil", nine, "y", o), "11 known, 12 known, 13 known, 21 known");
    o = ask(TUNE_ORDER_SOBOL, 3, 4);
    o.filter = TUNE_FILTER_UNMEASURED; /* 9 entities less the 5 known */
    struct work v = begin("fil", nine, "z", o);
    const char *drawn = next(&v, 100);
    assert_int_equal(strlen(drawn), 4 * strlen("11 run, ") - 2);
    assert_true(strstr(drawn, "23 run") && strstr(drawn, "31 run") && strstr(drawn, "32 run") && strstr(drawn, "33 run"));
    end(&v);
}

/* A selector with a limit takes the same ones, whatever others add meanwhile, in whichever order. */
static void grown(void **state)
{
    (void)state;
    for (int mode = TUNE_ORDER_SEQUENTIAL; mode <= TUNE_ORDER_RANDOM_GROUPED; mode++) {
        char store[16], first[64], second[64];
        bool grouped = mode >= TUNE_ORDER_SEQUENTIAL_GROUPED;
        struct tune_jobs_options o = selected((enum tune_order_mode)mode, 11, grouped ? "a" : NULL);
        snprintf(store, sizeof store, "grow%d", mode);
        all(store, SPACE("3, 2", "3, 2") BOTH, "before", ask(TUNE_ORDER_SEQUENTIAL, 0, -1));
        o.order.limit = 3;
        struct work w = begin(store, nine, "x", o);
        snprintf(first, sizeof first, "%s", next(&w, 2));
        end(&w);
        all(store, nine, "others", ask(TUNE_ORDER_SEQUENTIAL, 0, -1));
        snprintf(second, sizeof second, "%s", all(store, nine, "x", o));
        assert_int_equal(strlen(second), strlen("11 done, 12 done, 13 known"));
        for (int i = 0; i < 2; i++) {
            char done[16];
            snprintf(done, sizeof done, "%.2s done", first + 10 * i);
            assert_non_null(strstr(second, done));
        }
    }
}

/* Who takes over a repeat that somebody died in measures it, though a later one is there; a replay would be of the same. */
static void taken_over(void **state)
{
    struct tune_jobs_options o = ask(TUNE_ORDER_SEQUENTIAL, 0, -1);
    struct tune_job job;
    (void)state;
    o.repeat = 2;
    struct work w = begin("over", SPACE("1", "1, 2") BOTH, "x", o);
    assert_int_equal(tune_jobs_next(w.jobs, &job), 1); /* died here */
    tune_job_free(&job);
    assert_int_equal(tune_jobs_next(w.jobs, &job), 1);
    assert_int_equal(job.repeat, 1);
    record(&w, &job, TUNE_VALID, true);
    tune_job_free(&job);
    assert_int_equal(tune_jobs_next(w.jobs, &job), 1); /* an attempt that was to be tried again */
    record(&w, &job, TUNE_FAILED, false);
    tune_job_free(&job);
    assert_int_equal(tune_jobs_next(w.jobs, &job), 1); /* the last attempt */
    record(&w, &job, TUNE_FAILED, true);
    tune_job_free(&job);
    end(&w);
    assert_string_equal(all("over", SPACE("1", "1, 2") BOTH, "x", o), "11 run, 11 done, 12 run, 12 done");
    assert_string_equal(all("over", SPACE("1", "1, 2") BOTH, "y", o), "11 known, 11 known, 12 known, 12 run");
}

/* An experiment that has one dimension only is measured once for all entities that agree in it. */
static void shared(void **state)
{
    static const char two[] = SPACE("1, 2", "1, 2") "experiments: [{actuatorIdentifier: x, experimentIdentifier: both}, {actuatorIdentifier: x, experimentIdentifier: only}]\n";
    (void)state;
    struct work w = begin("share", two, "x", ask(TUNE_ORDER_SEQUENTIAL, 0, -1));
    struct tune_job job;
    char names[4][33];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tune_jobs_next(w.jobs, &job), 1);
        assert_ok(tune_result_cache_name(w.cache, job.binding, job.inputs, names[i]));
        tune_job_free(&job);
    }
    assert_string_equal(names[1], names[3]); /* one lease for both */
    assert_string_not_equal(names[0], names[2]);
    assert_string_not_equal(names[0], names[1]);
    end(&w);
    w = begin("share", two, "x", ask(TUNE_ORDER_SEQUENTIAL, 0, -1));
    assert_string_equal(next(&w, 2), "11 first run, 11 second run");
    end(&w);
    w = begin("share", two, "x", ask(TUNE_ORDER_SEQUENTIAL, 0, -1));
    assert_string_equal(next(&w, 4), "11 first done, 11 second done, 12 first run, 12 second known");
    end(&w);
}

static void counts(void **state)
{
    static const struct { const char *yaml; int64_t limit; int repeat; enum tune_filter filter; int64_t count; } cases[] = {
        {nine, -1, 1, TUNE_FILTER_NONE, 9},
        {nine, 4, 3, TUNE_FILTER_NONE, 12},
        {nine, 4, 1, TUNE_FILTER_PARTIAL, 0},
        {SPACE("1, 2, 3", "1, 2, 3") BOTH "constraints: [a <= b]\n", -1, 1, TUNE_FILTER_NONE, 6},
        {SPACE("1, 2, 3", "1, 2, 3") BOTH "constraints: [a <= b]\n", 8, 1, TUNE_FILTER_NONE, 6},
        {SPACE("1, 2, 3", "1, 2, 3") BOTH "constraints: [a <= b]\n", 2, 1, TUNE_FILTER_NONE, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_jobs_options o = ask(TUNE_ORDER_SEQUENTIAL, 0, cases[i].limit);
        o.repeat = cases[i].repeat;
        o.filter = cases[i].filter;
        struct work w = begin("count", cases[i].yaml, "x", o);
        assert_got(w.jobs);
        assert_int_equal(tune_jobs_count(w.jobs), cases[i].count);
        end(&w);
    }
}

/* Entities of a list, under one of several bindings. */
static void given(void **state)
{
    const struct tune_value first[] = {tune_value_int(3), tune_value_int(1)}, second[] = {tune_value_int(1), tune_value_int(2)};
    const struct tune_value *const list[] = {first, second};
    struct tune_jobs_options o = ask(TUNE_ORDER_RANDOM, 5, -1);
    struct tune_job job;
    (void)state;
    o.given = list;
    o.given_count = 2;
    o.before = 40;
    o.repeat = 2;
    struct work w = begin("given", nine, "x", o);
    assert_int_equal(tune_jobs_count(w.jobs), 4);
    assert_int_equal(tune_jobs_next(w.jobs, &job), 1);
    assert_int_equal(job.index, 40);
    tune_job_free(&job);
    assert_string_equal(next(&w, 9), "31 run, 12 run, 12 run");
    end(&w);
    w = begin("given2", nine, "x", o);
    struct tune_binding two[2] = {w.bindings[0], w.bindings[0]};
    o.space = w.space;
    o.bindings = two;
    o.first = o.count = 1;
    tune_result_cache_free(w.cache);
    assert_got(o.cache = w.cache = tune_result_cache_read(w.store, two, 2, "x"));
    o.provenance = provenance_of;
    tune_jobs_free(w.jobs);
    assert_got(w.jobs = tune_jobs_new(&o));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tune_jobs_next(w.jobs, &job), 1);
        assert_int_equal(job.binding, 1);
        assert_int_equal(job.index, 40 + i / 2);
        tune_job_free(&job);
    }
    assert_int_equal(tune_jobs_next(w.jobs, &job), 0);
    assert_int_equal(tune_jobs_next(w.jobs, &job), 0);
    end(&w);
}

/* The expected time is in proportion to the budget, if the binding has one. */
static void weighed(void **state)
{
    const struct tune_value far[] = {tune_value_int(9), tune_value_int(6)}, known[] = {tune_value_int(1), tune_value_int(3)};
    const struct tune_cached_row row = {.status = TUNE_VALID, .seconds = 30};
    struct tune_provenance provenance;
    struct work w = begin("weighed", nine, "x", ask(TUNE_ORDER_SEQUENTIAL, 0, -1));
    (void)state;
    next(&w, 9); /* each takes a second: a median of 1/2 for b = 1 */
    assert_true(tune_binding_weight(w.bindings, far) == 1);
    w.bindings[0].budget = 1;
    assert_true(tune_binding_weight(w.bindings, far) == 6);
    tune_result_cache_free(w.cache);
    assert_ok(tune_store_refresh(w.store));
    assert_got(w.cache = tune_result_cache_read(w.store, w.bindings, 1, "x"));
    assert_true(tune_result_cache_seconds(w.cache, 0, far) == 3);
    assert_true(tune_result_cache_seconds(w.cache, 0, known) == 1);
    provenance_of(NULL, w.bindings, far, &provenance);
    for (int i = 0; i < 10; i++)
        assert_ok(tune_result_cache_add(w.cache, 0, far, &provenance, &row)); /* 5 seconds for b = 1 */
    assert_true(tune_result_cache_seconds(w.cache, 0, (const struct tune_value[]){tune_value_int(8), tune_value_int(2)}) == 10);
    end(&w);
}

static int set_up(void **state)
{
    if (test_home_begin(state) < 0 || tune_file_make_folder("experiments") < 0)
        return -1;
    test_write("experiments", "both.json", both, strlen(both));
    test_write("experiments", "only.json", only, strlen(only));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(selectors), cmocka_unit_test(refusals), cmocka_unit_test(filtered),
                                       cmocka_unit_test(grown),     cmocka_unit_test(taken_over), cmocka_unit_test(shared),
                                       cmocka_unit_test(counts),    cmocka_unit_test(given),    cmocka_unit_test(weighed)};
    return cmocka_run_group_tests(tests, set_up, test_home_end);
}
