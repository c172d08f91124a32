/* test_discovery.c - spaces over stores: what is known of an entity, which rows a space sees, its four views and their counts; CSV,
 * and what its columns are when it is imported. tests/sweeps/test_samples.sh asks the same of the program. */
#include "test.h"

#include "files/csv.h"
#include "sweeps/discovery/import_parts.h"
#include "sweeps/discovery/results.h"
#include "sweeps/discovery/select.h"
#include "sweeps/discovery/view.h"

/* Under a sanitizer: the HDF5 library loses some bytes of its own whenever it refuses a file. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

/* ---- CSV ---- */

/* Rows of the text as "a|b;c", or what is wrong with it. */
static const char *csv(const char *text, size_t size)
{
    static char all[4096];
    FILE *f = fmemopen((void *)(uintptr_t)text, size, "r");
    struct tune_csv *c = tune_csv_from(f, "x.csv");
    const char *const *fields;
    int count, more;
    *all = 0;
    for (bool first = true; (more = tune_csv_row(c, &fields, &count)) == 1; first = false) {
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%d:", first ? "" : ";", (int)tune_csv_line(c));
        for (int i = 0; i < count; i++)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? "|" : "", fields[i]);
    }
    if (more < 0)
        snprintf(all, sizeof all, "%s", tune_error_message());
    tune_csv_free(c);
    fclose(f);
    return all;
}
#define CSV(text, expected) assert_string_equal(csv(text, sizeof text - 1), expected)

static void csv_rows(void **state)
{
    (void)state;
    CSV("a,b\n1,2\n", "1:a|b;2:1|2");
    CSV("a,b\r\n1,2\r\n", "1:a|b;2:1|2");
    CSV("a,b\n1,2", "1:a|b;2:1|2");
    CSV("\xef\xbb\xbf" "a,b\n1,2\n", "1:a|b;2:1|2");
    CSV("\xef\xbb\xbf" "\"a\"\n", "1:a");
    CSV("\n\na\n\r\n\nb\n", "3:a;6:b");
    CSV("", "");
    CSV("\n", "");
    CSV("\xef\xbb\xbf", "");
    CSV(",\n", "1:|");
    CSV(",,x\n\"\",\"\"\n", "1:||x;2:|");
    CSV("\"a,b\",\"say \"\"hi\"\"\"\n", "1:a,b|say \"hi\"");
    CSV("a\"b,c\n", "1:a\"b|c"); /* a quote within a field that has none at its begin is a letter */
    CSV("\"1\n2\r\n3\",x\ny\n", "1:1\n2\r\n3|x;4:y");
    CSV("a\nb,c,d\n", "1:a;2:b|c|d"); /* how many fields a row has is the caller's */
    CSV(" a , b \n", "1: a | b ");
    CSV("\xc3\xa9,\xe2\x82\xac\n", "1:\xc3\xa9|\xe2\x82\xac");
}

static void csv_that_is_none(void **state)
{
    (void)state;
    CSV("a\n\"b\n", "x.csv:2: a quote that is not closed by the end of the file");
    CSV("a\n\"b\n\n\nc", "x.csv:2: a quote that is not closed by the end of the file");
    CSV("\"a\"b\n", "x.csv:1: something behind a closing quote; expected a comma or the line's end");
    CSV("a\nb\0c\n", "x.csv:2: a NUL byte");
    CSV("\"a\n\0\"\n", "x.csv:2: a NUL byte");
    CSV("a\rb\n", "x.csv:1: a carriage return that ends no line");
    CSV("\"a\"\rb\n", "x.csv:1: a carriage return that ends no line");
    CSV("ok\n\xff\n", "x.csv:2: no UTF-8");
    CSV("\xc0\xaf\n", "x.csv:1: no UTF-8");
}

/* What is too large is refused before memory is short; what is just large is read. */
static void csv_of_size(void **state)
{
    (void)state;
    enum { LARGE = 5 << 20 };
    char *text = malloc(LARGE + 8), many[2 * TUNE_CSV_FIELDS + 8];
    memset(text, 'x', LARGE);
    strcpy(text + LARGE, ",y\nz\n");
    FILE *f = fmemopen(text, LARGE + 5, "r");
    struct tune_csv *c = tune_csv_from(f, "x.csv");
    const char *const *fields;
    int count;
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(tune_csv_row(c, &fields, &count), 1);
        assert_int_equal(count, 2);
        assert_int_equal(strlen(fields[0]), LARGE);
        assert_string_equal(fields[1], "y");
        assert_int_equal(tune_csv_row(c, &fields, &count), 1);
        assert_int_equal(tune_csv_row(c, &fields, &count), 0);
        assert_ok(tune_csv_rewind(c));
    }
    tune_csv_free(c);
    fclose(f);
    free(text);
    for (int i = 0; i <= TUNE_CSV_FIELDS; i++)
        memcpy(many + i, ",", 2);
    assert_string_equal(csv(many, TUNE_CSV_FIELDS), "x.csv:1: a row of too many fields"); /* commas and one */
    FILE *zero = fopen("endless.csv", "wb");
    fputs("\"", zero);
    for (int i = 0; i < (TUNE_CSV_ROW_BYTES >> 10) + 2; i++)
        fprintf(zero, "%1024d", i);
    fclose(zero);
    c = tune_csv_open("endless.csv");
    assert_int_equal(tune_csv_row(c, &fields, &count), -1);
    assert_error_has("endless.csv:1: a row that is too long");
    tune_csv_free(c);
    assert_null(tune_csv_open("."));
    assert_error_has(".: cannot be read");
    assert_null(tune_csv_open("gone.csv"));
}

static void csv_values(void **state)
{
    (void)state;
    double v[4];
    static const struct { const char *text; int count; double first, last; } cells[] = {
        {"1.5", 1, 1.5, 1.5}, {"-3e-5", 1, -3e-5, -3e-5}, {"[1, 2.5]", 2, 1, 2.5}, {"[1,2,3,4]", 4, 1, 4}, {"[ 7 ]", 1, 7, 7},
        {"inf", 1, INFINITY, INFINITY}, {"", 0, 0, 0}, {"[]", 0, 0, 0}};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        assert_int_equal(tune_import_values(cells[i].text, v, 4), cells[i].count);
        if (cells[i].count > 0)
            assert_true(v[0] == cells[i].first && v[cells[i].count - 1] == cells[i].last);
    }
    assert_int_equal(tune_import_values("[1, None, nan, NA]", v, 4), 4);
    assert_true(v[0] == 1 && isnan(v[1]) && isnan(v[2]) && isnan(v[3]));
    static const char *const missing[] = {"", "NA", "NaN", "nan", "null", "NULL", "None", "N/A", "n/a", "<NA>", "#N/A"}; /* as in pandas */
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        assert_int_equal(tune_import_values(missing[i], v, 4), 0);
    static const char *const none[] = {"x", "1 2", "0x10", "[1", "1]", "[1 2]", "[1,,2]", "[1, 2, 3, 4, 5]", "[[1]]", "[a]", "1,5",
                                       "[1] ", " 1", "--1", "[,]"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (tune_import_values(none[i], v, 4) >= 0)
            fail_msg("\"%s\" was taken for numbers", none[i]);
}

/* ---- a space, its experiments, a store ---- */

static struct tune_catalog catalog;
static struct tune_space *space;
static struct tune_binding *bindings;
static struct tune_store *store;
static struct tune_results results;

static const char work[] =
    "{\"identifier\": \"work\", \"actuator\": \"custom_experiments\", \"description\": \"\", \"program\": \"./work.sh\", "
    "\"output\": null,"
    "\"inputs\": [{\"identifier\": \"a\", \"required\": true, \"domain\": {\"domainRange\": [0, 1000], \"interval\": 1}},"
    "{\"identifier\": \"x\", \"default\": 0.5, \"domain\": {\"domainRange\": [0, 10]}},"
    "{\"identifier\": \"kind\", \"default\": \"plain\", \"domain\": {\"values\": [\"plain\", \"odd\", true, null]}}],"
    "\"targets\": [{\"identifier\": \"speed\", \"unit\": \"1/s\"}, "
    "{\"identifier\": \"steps\", \"whole\": true, \"optional\": true}]}";
static const char rest[] =
    "{\"identifier\": \"rest\", \"actuator\": \"custom_experiments\", \"description\": \"\", \"program\": \"./rest.sh\", "
    "\"output\": null,"
    "\"inputs\": [{\"identifier\": \"a\", \"required\": true, \"domain\": {\"domainRange\": [0, 1000], \"interval\": 1}}],"
    "\"targets\": [{\"identifier\": \"heat\", \"unit\": \"K\"}]}";
static const char nap[] = /* as rest, but for its name */
    "{\"identifier\": \"nap\", \"actuator\": \"custom_experiments\", \"description\": \"\", \"program\": \"./rest.sh\", "
    "\"output\": null,"
    "\"inputs\": [{\"identifier\": \"a\", \"required\": true, \"domain\": {\"domainRange\": [0, 1000], \"interval\": 1}}],"
    "\"targets\": [{\"identifier\": \"heat\", \"unit\": \"K\"}]}";
#define NAP "{actuatorIdentifier: custom_experiments, experimentIdentifier: nap}"
#define WORK "{actuatorIdentifier: custom_experiments, experimentIdentifier: work}"
#define REST "{actuatorIdentifier: custom_experiments, experimentIdentifier: rest}"

static void use(const char *yaml)
{
    if (space)
        tune_bindings_free(bindings, space->reference_count);
    tune_space_free(space);
    struct tune_document *d = tune_document_parse("s.yaml", yaml, strlen(yaml), false);
    assert_got(d);
    assert_got(space = tune_space_parse(d));
    assert_ok(tune_space_bind(space, &catalog, &bindings));
    results = (struct tune_results){store, space, bindings, "op", "space-none", "explicit_grid_sample_generator", "host"};
    assert_ok(tune_results_announce(&results));
}

static int begin(void **state)
{
    static const char *const paths[] = {"experiments"};
    if (test_home_begin(state) < 0 || tune_file_make_folder("experiments") < 0)
        return -1;
    test_write("experiments", "work.json", work, sizeof work - 1);
    test_write("experiments", "rest.json", rest, sizeof rest - 1);
    test_write("experiments", "nap.json", nap, sizeof nap - 1);
    store = tune_store_open("st", true);
    return store ? tune_catalog_read(&catalog, paths, 1) : -1;
}

static int end(void **state)
{
    if (space)
        tune_bindings_free(bindings, space->reference_count);
    tune_space_free(space);
    space = NULL;
    tune_catalog_free(&catalog);
    tune_store_free(store);
    return test_home_end(state);
}

/* Entity number `index` of the space measured under binding p, as operation op asked. */
static void measure(const char *op, tune_index index, int p, enum tune_status status, double first, double second,
                    const char *build)
{
    struct tune_value entity[8], inputs[8];
    double targets[2] = {first, second};
    struct tune_result result = {.status = status, .targets = targets, .started_s = 1.7e9, .seconds = first};
    struct tune_job job = {.kind = TUNE_JOB_RUN, .index = (int64_t)index, .binding = p, .entity = entity, .inputs = inputs,
                           .provenance = {"EPYC", "", "", ""}};
    uint8_t uid[16];
    snprintf(job.provenance.build, sizeof job.provenance.build, "%s", build);
    tune_space_entity(space, index, entity);
    tune_binding_inputs(&bindings[p], entity, inputs);
    results.operation = op;
    assert_ok(tune_results_measured(&results, &job, &result, true, uid));
    assert_true(tune_store_refresh(store) >= 0);
}

/* A CSV field reads back as it was written: alone in its row, first, last and between others. */
static void csv_written(void **state)
{
    (void)state;
    static const char *const texts[] = {"plain", "a,b", "say \"hi\"", "\"", "two\nlines", "a\rb", "\r", "end\r", "a\r\nb", "\n", "",
                                        " space ", "\xc3\xa9"};
    enum { TEXTS = sizeof texts / sizeof *texts };
    for (int i = 0; i < TEXTS; i++) {
        char *written, expected[256];
        size_t size;
        FILE *out = open_memstream(&written, &size);
        for (int field = 0; field < 3; field++) {
            if (field > 0)
                fputc(',', out);
            tune_csv_put(out, texts[i]);
        }
        fputs("\nx\n", out);
        fclose(out);
        int lines = 2;
        for (const char *c = texts[i]; *c; c++)
            lines += 3 * (*c == '\n');
        snprintf(expected, sizeof expected, "1:%s|%s|%s;%d:x", texts[i], texts[i], texts[i], lines);
        assert_string_equal(csv(written, size), expected);
        free(written);
    }
}

/* ---- results in the cache ---- */

static int cached(struct tune_result_cache *cache, int p, double a, struct tune_value x, const char *kind, const char *host, const char *build,
                  int accept)
{
    struct tune_value inputs[] = {tune_value_float(a), x, tune_value_text(kind)};
    const struct tune_cached_row *rows;
    struct tune_provenance o = {"", "", "", ""};
    snprintf(o.host_class, sizeof o.host_class, "%s", host);
    snprintf(o.build, sizeof o.build, "%s", build);
    return tune_result_cache_find(cache, p, inputs, &o, accept, &rows);
}

static void known_rows(void **state)
{
    (void)state;
    use("entitySpace: [{identifier: a, propertyDomain: {values: [1, 2, 3]}}, {identifier: x, propertyDomain: {values: [1, 2.5]}}]\n"
        "experiments: [" WORK "]");
    measure("op", 0, 0, TUNE_VALID, 2, 1, "b1");
    measure("op", 0, 0, TUNE_VALID, 4, 1, "b1");
    measure("op", 0, 0, TUNE_VALID, 6, 1, "b2");
    measure("op", 1, 0, TUNE_FAILED, 9, 1, "b1");
    measure("op", 2, 0, TUNE_VALID, 3, 1, "b1");
    measure("op", 2, 0, TUNE_FAILED, 30, 1, "b1");
    struct tune_result_cache *cache = tune_result_cache_read(store, bindings, 1, "op");
    struct tune_value one = tune_value_float(1), zero = tune_value_float(0.5);
    assert_got(cache);
    assert_int_equal(cached(cache, 0, 1, one, "plain", "EPYC", "b1", 0), 2); /* 1 and 1.0 are one */
    assert_int_equal(cached(cache, 0, 1, tune_value_int(1), "plain", "EPYC", "b1", 0), 2);
    assert_int_equal(cached(cache, 0, 1, one, "plain", "EPYC", "b2", 0), 1);
    assert_int_equal(cached(cache, 0, 1, one, "plain", "EPYC", "b3", 0), 0);
    assert_int_equal(cached(cache, 0, 1, one, "plain", "EPYC", "b3", TUNE_ACCEPT_BUILD), 3);
    assert_int_equal(cached(cache, 0, 1, one, "plain", "Xeon", "b1", TUNE_ACCEPT_BUILD), 0);
    assert_int_equal(cached(cache, 0, 1, one, "plain", "Xeon", "b1", TUNE_ACCEPT_HOST), 2);
    tune_result_cache_before(cache, "EPYC"); /* what Xeon was called before */
    assert_int_equal(cached(cache, 0, 1, one, "plain", "Xeon", "b1", 0), 2);
    tune_result_cache_before(cache, "another");
    assert_int_equal(cached(cache, 0, 1, one, "plain", "Xeon", "b1", 0), 0);
    tune_result_cache_before(cache, "");
    assert_int_equal(cached(cache, 0, 1, one, "plain", "Xeon", "b1", 0), 0);
    assert_int_equal(cached(cache, 0, 1, one, "odd", "EPYC", "b1", 0), 0);
    assert_int_equal(cached(cache, 0, 1, zero, "plain", "EPYC", "b1", 0), 0);
    assert_int_equal(cached(cache, 0, 1, tune_value_float(2.5), "plain", "EPYC", "b1", 0), 1); /* failed ones are known, too */
    const struct tune_cached_row *rows;
    struct tune_value inputs[] = {tune_value_int(1), one, tune_value_text("plain")};
    assert_int_equal(tune_result_cache_find(cache, 0, inputs, &(struct tune_provenance){"EPYC", "b1", "", ""}, 0, &rows), 2);
    assert_true(rows[0].seconds == 2 && rows[1].seconds == 4 && rows[0].status == TUNE_VALID); /* oldest first */
    static const struct tune_provenance others[] = {{"EPYC", "b1", "other", ""}, {"EPYC", "b1", "", "other"}};
    for (int i = 0; i < 2; i++) { /* of other weights, of other data */
        assert_int_equal(tune_result_cache_find(cache, 0, inputs, &others[i], 0, &rows), 0);
        assert_int_equal(tune_result_cache_find(cache, 0, inputs, &others[i], i ? TUNE_ACCEPT_WEIGHTS : TUNE_ACCEPT_DATA, &rows), 0);
        assert_int_equal(tune_result_cache_find(cache, 0, inputs, &others[i], i ? TUNE_ACCEPT_DATA : TUNE_ACCEPT_WEIGHTS, &rows), 2);
    }
    assert_true(tune_result_cache_seconds(cache, 0, inputs) == 4); /* of this entity, wherever measured: the mean */
    inputs[0] = tune_value_int(3);
    assert_true(tune_result_cache_seconds(cache, 0, inputs) == 4); /* of others: the median of the valid ones */
    inputs[0] = tune_value_int(2);
    assert_true(tune_result_cache_seconds(cache, 0, inputs) == 3); /* the one that failed took 30 s */
    inputs[0] = tune_value_int(1);
    inputs[1] = tune_value_float(2.5);
    assert_true(tune_result_cache_seconds(cache, 0, inputs) == 4); /* this entity only failed: the median of the others */
    inputs[0] = tune_value_int(3);
    inputs[1] = one;
    uint64_t first = tune_entity_hash("a.1-x.1", 7), second = tune_entity_hash("a.1-x.2.5", 9), third = tune_entity_hash("a.3-x.1", 7);
    assert_true(tune_result_cache_asked(cache, first) && tune_result_cache_asked(cache, second) && !tune_result_cache_asked(cache, third));
    inputs[0] = tune_value_int(1);
    assert_int_equal(tune_result_cache_answered(cache, 0, inputs, first, 0), 1);
    assert_int_equal(tune_result_cache_answered(cache, 0, inputs, first, 1), 0); /* a second repeat was not asked for */
    assert_int_equal(tune_result_cache_answered(cache, 0, inputs, third, 0), 0);
    inputs[1] = tune_value_float(2.5);
    assert_int_equal(tune_result_cache_answered(cache, 0, inputs, second, 0), 1); /* failed, and not to be tried again */
    inputs[0] = tune_value_int(3);
    inputs[1] = one;
    assert_ok(tune_result_cache_add(cache, 0, inputs, &(struct tune_provenance){"EPYC", "b1", "", ""}, &(struct tune_cached_row){.seconds = 1}));
    assert_int_equal(cached(cache, 0, 3, one, "plain", "EPYC", "b1", 0), 1);
    inputs[0] = tune_value_float(1.5); /* no whole number */
    assert_int_equal(tune_result_cache_find(cache, 0, inputs, NULL, 0, &rows), -1);
    assert_error_has("a must be a whole number");
    tune_result_cache_free(cache);
}

static void known_of_others(void **state)
{
    (void)state;
    use("entitySpace: [{identifier: a, propertyDomain: {values: [1, 2]}}]\nexperiments: [" REST "]");
    struct tune_result_cache *nothing = tune_result_cache_read(NULL, bindings, 1, NULL), *cache = tune_result_cache_read(store, bindings, 1, NULL);
    struct tune_value a = tune_value_int(1);
    const struct tune_cached_row *rows;
    assert_got(cache);
    assert_int_equal(tune_result_cache_find(nothing, 0, &a, NULL, 0, &rows) + tune_result_cache_find(cache, 0, &a, NULL, 0, &rows), 0);
    assert_true(isnan(tune_result_cache_seconds(cache, 0, &a)));
    assert_int_equal(tune_result_cache_refresh(cache), 0);
    struct tune_store *other = tune_store_open("st", false), *own = store;
    store = results.store = other;
    assert_ok(tune_results_announce(&results));
    measure("theirs", 0, 0, TUNE_VALID, 1, 0, "b");
    store = results.store = own;
    assert_int_equal(tune_result_cache_refresh(cache), 1); /* another process' row */
    assert_int_equal(tune_result_cache_find(cache, 0, &a, NULL, 0, &rows), 1);
    tune_store_free(other);
    tune_result_cache_free(cache);
    tune_result_cache_free(nothing);
    int accept;
    assert_ok(tune_accept_read("any-host,any-data", &accept));
    assert_int_equal(accept, TUNE_ACCEPT_HOST | TUNE_ACCEPT_DATA);
    assert_ok(tune_accept_read(NULL, &accept));
    assert_int_equal(accept, 0);
    assert_int_equal(tune_accept_read("any-host,any", &accept), -1);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
}

/* Two experiments never share rows. A growing table keeps the order of its rows. */
static void known_apart(void **state)
{
    (void)state;
    use("entitySpace: [{identifier: a, propertyDomain: {values: [1, 2]}}]\nexperiments: [" REST ", " NAP "]");
    measure("op", 0, 0, TUNE_VALID, 1, 0, "b");
    struct tune_result_cache *cache = tune_result_cache_read(store, bindings, 2, NULL);
    struct tune_value a = tune_value_int(1), other = tune_value_int(2);
    const struct tune_cached_row *rows;
    char names[3][33];
    assert_got(cache);
    assert_int_equal(tune_result_cache_find(cache, 0, &a, NULL, 0, &rows), 1);
    assert_int_equal(tune_result_cache_find(cache, 1, &a, NULL, 0, &rows), 0);
    assert_ok(tune_result_cache_name(cache, 0, &a, names[0]));
    assert_ok(tune_result_cache_name(cache, 1, &a, names[1]));
    struct tune_experiment elsewhere = *bindings[1].experiment;
    elsewhere.actuator = "another";
    struct tune_binding moved = bindings[1];
    moved.experiment = &elsewhere;
    struct tune_result_cache *of_another = tune_result_cache_read(NULL, &moved, 1, NULL);
    assert_got(of_another);
    assert_ok(tune_result_cache_name(of_another, 0, &a, names[2]));
    assert_true(strcmp(names[0], names[1]) && strcmp(names[1], names[2]));
    tune_result_cache_free(of_another);
    for (int i = 0; i < 1000; i++)
        assert_ok(tune_result_cache_add(cache, 1, i % 2 ? &a : &other, &(struct tune_provenance){"EPYC", "b", "", ""},
                                        &(struct tune_cached_row){.seconds = (float)i}));
    assert_int_equal(tune_result_cache_find(cache, 1, &a, NULL, 0, &rows), 500);
    for (int i = 0; i < 500; i++)
        assert_true(rows[i].seconds == (float)(2 * i + 1));
    tune_result_cache_free(cache);

    /* a row of an actuator that is not ours; one result that was handed out again, twice */
    struct tune_binding foreign[2] = {bindings[0], bindings[1]};
    snprintf(foreign[0].full_identifier, sizeof foreign[0].full_identifier, "another.rest");
    results.bindings = foreign;
    measure("op", 1, 0, TUNE_VALID, 1, 0, "b");
    results.bindings = bindings;
    assert_got(cache = tune_result_cache_read(store, bindings, 2, NULL));
    assert_int_equal(tune_result_cache_find(cache, 0, &other, NULL, 0, &rows), 0);
    assert_int_equal(tune_result_cache_find(cache, 0, &a, NULL, 0, &rows), 1);
    struct tune_cached_row twice[2] = {rows[0], rows[0]};
    results.operation = "again";
    assert_ok(tune_results_replayed(&results, &(struct tune_job){.entity = &a, .rows = twice, .row_count = 2}));
    tune_result_cache_free(cache);
    assert_true(tune_store_refresh(store) >= 0);
    assert_got(cache = tune_result_cache_read(store, bindings, 2, "again"));
    for (int repeat = 0; repeat < 3; repeat++)
        assert_int_equal(tune_result_cache_answered(cache, 0, &a, tune_entity_hash("a.1", 3), repeat), repeat < 2);
    tune_result_cache_free(cache);

    /* a store that is read again is not read twice, also when the table grows */
    struct tune_store *theirs = tune_store_open("st", false);
    assert_got(cache = tune_result_cache_read(theirs, bindings, 2, NULL));
    measure("op", 0, 0, TUNE_VALID, 3, 0, "b");
    assert_int_equal(tune_result_cache_refresh(cache), 1);
    for (int i = 0; i < 300; i++)
        assert_ok(tune_result_cache_add(cache, 1, &other, &(struct tune_provenance){"EPYC", "b", "", ""}, &(struct tune_cached_row){.seconds = 1}));
    assert_int_equal(tune_result_cache_find(cache, 0, &a, NULL, 0, &rows), 2);

    /* a row that another reader of the store saw first, such as a view */
    measure("op", 0, 0, TUNE_VALID, 3, 0, "b");
    struct tune_result_cache *reader = tune_result_cache_read(theirs, bindings, 2, NULL);
    assert_got(reader);
    assert_int_equal(tune_result_cache_refresh(cache), 1);
    assert_int_equal(tune_result_cache_find(cache, 0, &a, NULL, 0, &rows), 3);
    assert_int_equal(tune_result_cache_refresh(cache), 0);
    assert_int_equal(tune_result_cache_refresh(reader), 0);
    tune_result_cache_free(reader);
    tune_result_cache_free(cache);
    tune_store_free(theirs);

    /* one experiment under two names: its rows are read once */
    use("entitySpace: [{identifier: a, propertyDomain: {values: [1, 2]}}]\nexperiments: [{actuatorIdentifier: custom_experiments, "
        "experimentIdentifier: work, parameterization: [{property: {identifier: kind}, value: odd}]}, " WORK "]");
    measure("op", 0, 0, TUNE_VALID, 1, 0, "b");
    struct tune_value inputs[] = {a, tune_value_float(0.5), tune_value_text("odd")};
    assert_got(cache = tune_result_cache_read(store, bindings, 2, NULL));
    assert_int_equal(tune_result_cache_find(cache, 0, inputs, NULL, 0, &rows), 1);
    tune_result_cache_free(cache);
}

/* ---- rows a space sees ---- */

/* The matching's entities, then its rows as "entity/binding". */
static const char *matching(void)
{
    static char text[4096];
    struct tune_matching m;
    struct tune_value values[8];
    assert_ok(tune_matching_read(&m, store, space, bindings, space->reference_count));
    *text = 0;
    for (int i = 0; i < m.count; i++) {
        size_t n = strlen(text);
        tune_matching_values(&m, i, values);
        snprintf(text + n, sizeof text - n, "%s", i ? " " : "");
        tune_entity_identifier(space->names, values, space->count, text + strlen(text), sizeof text - strlen(text));
    }
    for (int i = 0; i < m.row_count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %d/%d", m.rows[i].entity, m.rows[i].binding);
    tune_matching_free(&m);
    return text;
}

static void matching_rows(void **state)
{
    (void)state;
    use("entitySpace: [{identifier: a, propertyDomain: {values: [1, 2, 3]}}, {identifier: x, propertyDomain: {values: [1, 2.5]}},\n"
        "  {identifier: kind, propertyDomain: {values: [plain, true]}}]\nexperiments: [" WORK "]");
    assert_string_equal(matching(), "");
    measure("op", 0, 0, TUNE_VALID, 1, 1, "b");  /* 1 1 plain */
    measure("op", 5, 0, TUNE_VALID, 1, 1, "b");  /* 2 1 True */
    measure("op", 10, 0, TUNE_FAILED, 1, 1, "b"); /* 3 2.5 plain */
    measure("op", 0, 0, TUNE_INVALID, NAN, 1, "b");
    assert_string_equal(matching(), "a.1-x.1-kind.plain a.2-x.1-kind.1 a.3-x.2.5-kind.plain 0/0 1/0 2/0 0/0");
    /* not to be counted; another order; two of one experiment */
    use("entitySpace: [{identifier: x, propertyDomain: {domainRange: [0, 2]}}, {identifier: a, propertyDomain: {values: [2, 1]}}]\n"
        "experiments: [{actuatorIdentifier: custom_experiments, experimentIdentifier: work, parameterization:\n"
        "  [{property: {identifier: kind}, value: true}]}, " WORK "]");
    assert_string_equal(matching(), "x.1.0-a.1 x.1.0-a.2 0/1 1/0 0/1");
    use("entitySpace: [{identifier: a, propertyDomain: {domainRange: [2, 9], interval: 1}}]\nexperiments: [" WORK "]");
    assert_string_equal(matching(), "a.2 a.3 0/-1 1/-1"); /* in the space, measured with other parameters */
    use("entitySpace: [{identifier: a, propertyDomain: {values: [1, 2, 3]}}, {identifier: x, propertyDomain: {values: [1, 2.5]}}]\n"
        "experiments: [" WORK "]\nconstraints: ['a * x < 5']");
    assert_string_equal(matching(), "a.1-x.1 a.2-x.1 0/0 1/-1 0/0");
    /* 0.0 and -0.0 are one value, also where another one has taken their place among those that were seen */
    double values[] = {-0.0, 0, 0}, none = 0;
    char yaml[512];
    do
        values[1] += 1.0 / 4096;
    while (tune_hash64(&values[1], sizeof none, 4) % 256 != tune_hash64(&none, sizeof none, 4) % 256);
    for (int i = 0; i < 3; i++) {
        snprintf(yaml, sizeof yaml, "entitySpace: [{identifier: a, propertyDomain: {values: [9]}}, {identifier: x, "
                 "propertyDomain: {values: [%.17f]}}]\nexperiments: [" WORK "]", values[i]);
        use(yaml);
        measure("op", 0, 0, TUNE_VALID, 1, 1, "b");
    }
    use("entitySpace: [{identifier: a, propertyDomain: {values: [9]}}, {identifier: x, propertyDomain: {domainRange: [0, 1]}}]\n"
        "experiments: [" WORK "]");
    assert_non_null(strstr(matching(), " 0/0 1/0 0/0"));
}

/* An experiment that takes only some of the dimensions. */
static void matching_shared(void **state)
{
    (void)state;
    use("entitySpace: [{identifier: a, propertyDomain: {values: [1, 2]}}, {identifier: x, propertyDomain: {values: [1, 2, 3]}}]\n"
        "experiments: [" WORK ", " REST "]");
    measure("op", 4, 0, TUNE_VALID, 1, 1, "b");
    measure("op", 4, 1, TUNE_VALID, 7, NAN, "b");
    assert_string_equal(matching(), "a.2-x.2 a.2-x.1 a.2-x.3 0/0 1/1 0/1 2/1");
    use("entitySpace: [{identifier: a, propertyDomain: {values: [1, 2]}}, {identifier: x, propertyDomain: {domainRange: [0, 9]}}]\n"
        "experiments: [" REST ", " WORK "]"); /* not to be counted: of those only that other rows name */
    assert_string_equal(matching(), "a.2-x.2.0 0/1 0/0");
    /* two dimensions that it does not take: every pair of their values */
    use("entitySpace: [{identifier: x, propertyDomain: {values: [1, 2.5]}}, {identifier: kind, propertyDomain: {values: [plain, odd]}},\n"
        "  {identifier: a, propertyDomain: {values: [77, 78]}}]\nexperiments: [" REST ", " WORK "]");
    measure("op", 1, 0, TUNE_VALID, 1, 1, "b");
    assert_string_equal(matching(), "x.1-kind.plain-a.78 x.1-kind.odd-a.78 x.2.5-kind.plain-a.78 x.2.5-kind.odd-a.78 0/0 1/0 2/0 3/0");
}

/* Rows that name no experiment, or none of their table's, are counted, not dropped without a word. */
static void strays(void **state)
{
    (void)state;
    static const char *const experiments[] = {"", "work", "custom_experiments.", "custom_experiments.other", "custom_experiments.work",
                                              "elsewhere.work-kind.odd", "custom_experiments.workshop", "custom_experiments.work"};
    use("entitySpace: [{identifier: a, propertyDomain: {values: [1, 2]}}]\nexperiments: [" WORK "]");
    for (int i = 0; i < 8; i++) {
        struct tune_cell cells[TUNE_KEYS + 5] = {[TUNE_KEY_UID] = {.text = "0123456789abcdef0123456789abcdef"}};
        for (int c = 0; c < TUNE_KEYS; c++)
            cells[c].absent = tune_key_column((enum tune_key)c)->type == TUNE_CELL_TEXT && !cells[c].text;
        cells[TUNE_KEY_EXPERIMENT] = (struct tune_cell){.absent = !*experiments[i], .text = experiments[i]};
        cells[TUNE_KEYS] = (struct tune_cell){.whole = 1, .number = 1};
        cells[TUNE_KEYS + 2].text = "plain";
        cells[TUNE_KEY_UID].absent = i == 7;
        assert_ok(tune_store_append(store, "work", cells, NULL));
    }
    assert_true(tune_store_refresh(store) >= 0);
    struct tune_matching m;
    assert_ok(tune_matching_read(&m, store, space, bindings, 1));
    assert_int_equal(m.strays, 6); /* "elsewhere" is another actuator's experiment, the one before is of this one */
    assert_int_equal(m.row_count, 1);
    tune_matching_free(&m);
}

/* ---- expressions over rows ---- */

/* The row x 3, speed (measured) under these expressions: wanted or not, and the new columns. */
static const char *selected(const char *where, const char *derive, double speed)
{
    static char text[1024];
    static const char *const names[] = {"x", "speed"};
    struct tune_value values[8] = {tune_value_int(3), isnan(speed) ? tune_value_none() : tune_value_float(speed)};
    struct tune_derived *derived;
    int count;
    if (tune_derived_read(derive, &derived, &count) < 0)
        return tune_error_message();
    struct tune_select *s = tune_select_new(names, 2, 1, where, derived, count);
    if (!s) {
        tune_derived_free(derived, count);
        return tune_error_message();
    }
    int wanted = tune_select_row(s, values);
    snprintf(text, sizeof text, "%s%s", wanted < 0 ? "error" : wanted ? "yes" : "no", tune_select_by_inputs(s) ? "" : " measured");
    for (int d = 0; d < count; d++) {
        struct tune_value value;
        double number = NAN;
        size_t n = strlen(text);
        if (tune_select_value(s, d, values, &value) < 0)
            snprintf(text + n, sizeof text - n, " %s=error", derived[d].name);
        else
            snprintf(text + n, sizeof text - n, " %s%s%g", derived[d].name, tune_select_compiled(s, d) ? "=" : "?",
                     tune_value_number(&value, &number) ? number : -1);
    }
    tune_select_free(s);
    tune_derived_free(derived, count);
    tune_error_clear();
    return text;
}

static void expressions(void **state)
{
    (void)state;
    assert_string_equal(selected(NULL, NULL, 5), "yes");
    assert_string_equal(selected("x > 3", NULL, 5), "no");
    assert_string_equal(selected("x > 2 and speed > 4", "", 5), "yes measured");
    assert_string_equal(selected("speed > 4", NULL, NAN), "no measured");
    assert_string_equal(selected("speed == None", NULL, NAN), "yes measured");
    assert_string_equal(selected("1 / (x - 3)", NULL, NAN), "error");
    assert_string_equal(selected("speed / 0", NULL, 5), "error measured");
    assert_string_equal(selected("none > 4", NULL, 5), "no");
    assert_string_equal(selected("b > 9", " a = speed * 2 ;; b=a + x; ", 5), "yes measured a=10 b=13");
    assert_string_equal(selected("b > 9", "a = speed * 2; b = a + x", NAN), "no measured a=-1 b=-1");
    assert_string_equal(selected("a", "a = x > 2", NAN), "yes measured a=1");
    assert_string_equal(selected(NULL, "a = sped; b = a; c = x", 5), "yes a?-1 b?-1 c=3");
    assert_string_equal(selected("speed > 0", "a = 1 / speed", 0), "no measured a=error");
    assert_string_equal(selected(NULL, "a = 'x;\\';' != 'y'; b = `x` ; c = x == 3", 5), "yes a=1 b=3 c=1");
    assert_non_null(strstr(selected(NULL, "x = 2", 5), "a column x exists already"));
    assert_non_null(strstr(selected(NULL, "a = 2; a = 3", 5), "defines a twice"));
    assert_non_null(strstr(selected(NULL, "3a = 2", 5), "expected NAME = EXPRESSION"));
    assert_non_null(strstr(selected(NULL, "a == 2", 5), "expected NAME = EXPRESSION"));
    assert_non_null(strstr(selected(NULL, "a; b = 2", 5), "\"a\": expected NAME"));
}

/* ---- views ---- */

static const char *view(enum tune_view_include include, const char *where, const char *operation)
{
    static char text[4096];
    static const char *const columns[] = {"speed", "heat", "steps"};
    struct tune_view_options o = {.include = include, .where = where, .operation = operation, .columns = columns,
                                  .column_count = 3};
    struct tune_view *v = tune_view_open(store, space, bindings, &o);
    struct tune_view_group g;
    const struct tune_cell *cells;
    int more;
    if (!v)
        return tune_error_message();
    for (int pass = 0; pass < 2; pass++, tune_view_rewind(v)) { /* twice the same */
        *text = 0;
        while ((more = tune_view_next(v, &g)) == 1) {
            size_t n = strlen(text);
            snprintf(text + n, sizeof text - n, "%s", n ? " " : "");
            tune_entity_identifier(space->names, g.entity, space->count, text + strlen(text), sizeof text - strlen(text));
            for (int k = 0; k < g.results; k++) {
                assert_got(cells = tune_view_cells(v, k));
                snprintf(text + strlen(text), sizeof text - strlen(text), "%s%g", k ? "," : "=",
                         cells[g.binding].absent ? -1 : cells[g.binding].number);
            }
        }
        assert_int_equal(more, 0);
    }
    tune_view_free(v);
    return text;
}

static void record(const char *id)
{
    struct tune_operation_record r = {.status = "finished", .started_s = 1, .options = {.memoize = true, .repeat = 1}};
    snprintf(r.id, sizeof r.id, "%s", id);
    snprintf(r.space, sizeof r.space, "space-%s", space->id);
    assert_ok(tune_operation_record_write(store, &r));
}

/* A new column is computed for each result, under the experiments that have its names. */
static void doubled(void)
{
    static const char *const columns[] = {"steps", "twice", "speed"};
    struct tune_derived twice = {(char *)(uintptr_t)"twice", (char *)(uintptr_t)"2 * speed"};
    struct tune_view_options o = {.include = TUNE_VIEW_MATCHING, .columns = columns, .column_count = 3, .where = "twice < 45 or a == 1",
                                  .derived = &twice, .derived_count = 1};
    struct tune_view *v = tune_view_open(store, space, bindings, &o);
    struct tune_view_group g;
    const struct tune_cell *cells;
    double expected[] = {42, 44, 22};
    int n = 0;
    assert_got(v);
    while (tune_view_next(v, &g) == 1)
        for (int k = 0; k < g.results; k++, n++) {
            assert_got(cells = tune_view_cells(v, k));
            assert_true(n < 3 && cells[1].number == expected[n] && cells[2].number == expected[n] / 2 && cells[0].number == 1);
        }
    assert_int_equal(n, 3);
    tune_view_free(v);
    twice.text = (char *)(uintptr_t)"2 * sped";
    assert_null(tune_view_open(store, space, bindings, &o));
    assert_non_null(strstr(tune_error_message(), "`derive` twice: unknown name \"sped\""));
}

static void two_views(void **state)
{
    (void)state;
    struct tune_view_counts c;
    struct tune_view_provenances o;
    use("entitySpace: [{identifier: a, propertyDomain: {values: [1, 2, 3]}}, {identifier: x, propertyDomain: {values: [1, 2]}}]\n"
        "experiments: [" WORK ", " REST "]");
    record("op");
    record("op2");
    measure("op", 2, 0, TUNE_VALID, 21, 1, "b1");
    measure("op", 0, 0, TUNE_VALID, 11, 1, "b1");
    measure("op", 0, 1, TUNE_VALID, 1, NAN, "b2");
    measure("op2", 2, 0, TUNE_VALID, 22, 1, "b3");
    measure("op2", 3, 0, TUNE_FAILED, NAN, NAN, "b1");
    measure("elsewhere", 4, 0, TUNE_VALID, 31, NAN, "b1");
    assert_string_equal(view(TUNE_VIEW_MEASURED, NULL, NULL), "a.2-x.1=21,22 a.1-x.1=11 a.1-x.1=1");
    assert_string_equal(view(TUNE_VIEW_MEASURED, NULL, "op2"), "a.2-x.1=22");
    assert_string_equal(view(TUNE_VIEW_MATCHING, NULL, NULL), "a.2-x.1=21,22 a.1-x.1=11 a.1-x.1=1 a.3-x.1=31 a.1-x.2=1");
    assert_string_equal(view(TUNE_VIEW_MATCHING, "x == 1 and a < 3", NULL), "a.2-x.1=21,22 a.1-x.1=11 a.1-x.1=1");
    assert_string_equal(view(TUNE_VIEW_MATCHING, "kind == 'plain' and a < 3", NULL), "a.2-x.1=21,22 a.1-x.1=11");
    assert_non_null(strstr(view(TUNE_VIEW_MATCHING, "b == 1", NULL), "`where`"));
    assert_string_equal(view(TUNE_VIEW_MATCHING, "speed > 21", NULL), "a.2-x.1=22 a.3-x.1=31");
    assert_string_equal(view(TUNE_VIEW_MATCHING, "heat < 9 and a == 1", NULL), "a.1-x.1=1 a.1-x.2=1");
    doubled();
    static const char *const columns[] = {"speed", "heat", "steps"};
    struct tune_view_options all = {.include = TUNE_VIEW_MATCHING, .columns = columns, .column_count = 3};
    struct tune_view *v = tune_view_open(store, space, bindings, &all);
    assert_got(v);
    assert_ok(tune_view_counted(v, &c));
    assert_true(c.measured == 2 && c.measured_all == 1 && c.measured_partly == 1);
    assert_true(c.matching == 5 && c.matching_results == 4 && c.matching_all == 1);
    assert_ok(tune_view_mixed(v, &o));
    assert_true(o.host_classes == 1 && o.builds == 2 && !o.weights && !o.data); /* rest's program is another one */
    tune_view_free(v);
}

/* ---- import ---- */

static int64_t bad_line;
static char bad_text[256];
static void save_bad_line(void *context, const char *path, int64_t line, const char *what)
{
    (void)context;
    (void)path;
    bad_line = line;
    snprintf(bad_text, sizeof bad_text, "%s", what);
}

/* The file into the store; how many rows came, or -1. */
static const char *units[2];
static int64_t import(const char *experiment, const char *inputs, const char *text)
{
    struct tune_import i = {.store = store, .catalog = &catalog, .path = "in.csv", .experiment = experiment, .problem = save_bad_line,
                            .inputs = &inputs, .input_count = inputs != NULL, .units = units,
                            .unit_count = !units[0] ? 0 : !units[1] ? 1 : 2};
    bad_line = 0;
    test_write(".", "in.csv", text, strlen(text));
    return tune_import_csv(&i) < 0 || tune_store_refresh(store) < 0 ? -1 : i.added;
}

#define AT "custom_experiments.work"
static void imported(void **state)
{
    (void)state;
    const char *heading = ",identifier,generatorid,experiment_id,a,x,speed,steps\n";
    char text[1024];
    use("entitySpace: [{identifier: a, propertyDomain: {values: [1, 2, 3]}}, {identifier: x, propertyDomain: {values: [1, 2]}}]\n"
        "experiments: [" WORK ", {actuatorIdentifier: custom_experiments, experimentIdentifier: work, parameterization:\n"
        "  [{property: {identifier: kind}, value: true}]}]");
    snprintf(text, sizeof text, "%s%s", heading,
             "0,a.1-x.1.0,g," AT ",1,1,10,1\n1,x.2-a.1," AT "," AT "-kind.1,1,2.0,\"[20, 21]\",\"[2, 3]\"\n"
             "2,a.2-x.1,g,work,2,1,9,9\n");
    assert_int_equal(import("work", NULL, text), 3);
    assert_string_equal(view(TUNE_VIEW_MATCHING, NULL, NULL), "a.1-x.1=10 a.1-x.2=-1,-1");
    assert_int_equal(import("custom_experiments.work", NULL, text), 0);
    snprintf(text, sizeof text, "%s%s", heading,
             "0,0xc0ffee,g," AT ",1,1.0,10.0,1\n1,c0ffef,g," AT ",3,2,33,3\n2,c0ffef,g," AT ",3,2,33,3\n");
    assert_int_equal(import("work", NULL, text), 1); /* one is there, one is there twice in the file */
    assert_string_equal(view(TUNE_VIEW_MATCHING, "a == 3", NULL), "a.3-x.2=33");
    snprintf(text, sizeof text, "a,speed\n2,5.5\n");
    assert_int_equal(import("work", "a", text), 1);
    assert_int_equal(import("work", "b", text), -1);
    assert_error_has("in.csv:2: there is no column b");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    static const struct { const char *rows; int line; const char *what; } bad[] = {
        {"0,a.1-x.1,g," AT ",1,1,10\n", 0, "not as many fields as the heading"},
        {"0,a.1-x.1,g," AT ",1,1,10,1\n1,a.1\n", 3, "the row has 2 fields, but the heading has 8"},
        {"0,a.1-x.1,g," AT ",1,1,ten,1\n", 2, "\"ten\" is neither a number"},
        {"0,a.1000-x.1,g," AT ",1000,1,10,1\n", 2, "cannot be \"1000\""},
        {"0,a.1.5-x.1,g," AT ",1.5,1,10,1\n", 2, "cannot be \"1.5\""},
        {"0,c0ffee,g," AT ",,1,10,1\n", 2, "cannot be \"\"; an empty cell is None, which is neither among its values nor its default"},
        {"0,a.1-x.1,g," AT "-kind.even,1,1,10,1\n", 2, "input kind of experiment work cannot be \"even\""},
        {"0,a.1-x.1,g," AT ",1,1,\"[1, 2]\",\"[1, 2, 3]\"\n", 2, "so they cannot be matched"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "%s%s", heading, bad[i].rows);
        assert_int_equal(import("work", NULL, text), -1);
        assert_int_equal(bad_line, bad[i].line);
        if (!strstr(bad[i].line ? bad_text : tune_error_message(), bad[i].what))
            fail_msg("%s: \"%s\" lacks \"%s\"", bad[i].rows, bad[i].line ? bad_text : tune_error_message(), bad[i].what);
    }
    assert_string_equal(view(TUNE_VIEW_MATCHING, "a == 1", NULL), "a.1-x.1=10 a.1-x.2=-1,-1"); /* nothing of them came */
}

/* An experiment that the file makes: its domains hold what the file holds. */
static void made(void **state)
{
    (void)state;
    struct tune_experiment *e;
    assert_int_equal(import("new", NULL, ",identifier,generatorid,model,n,r,new-depth.2-t,new-depth.2-count,other-t\n"
                                         "0,model.a-b-n.1-r.0.5,g,a-b,1,0.5,\"[1.5, 2.5]\",\"[1, 2]\",7\n"
                                         "1,model.c-n.2-r.1,g,c,2,1,,3,\n"), 3);
    assert_got(e = tune_experiment_read("st/experiments/new.json"));
    assert_string_equal(e->actuator, "replay");
    assert_int_equal(e->input_count, 4);
    assert_int_equal(e->inputs[0].domain.type, TUNE_OPEN_CATEGORICAL);
    assert_int_equal(e->inputs[1].domain.type, TUNE_DISCRETE);
    assert_int_equal(e->inputs[2].domain.type, TUNE_CONTINUOUS);
    assert_string_equal(e->names[3], "depth");
    assert_false(e->inputs[3].required);
    assert_int_equal(e->target_count, 2);
    assert_true(!strcmp(e->targets[1].name, "count") && e->targets[1].whole && !e->targets[0].whole);
    tune_experiment_free(e);
    assert_int_equal(import("apart", NULL, ",identifier,generatorid,a,apart-n.1-t,apart-n.2-t\n0,a.1,g,1,3,2.5\n"), 2);
    assert_got(e = tune_experiment_read("st/experiments/apart.json"));
    assert_true(e->target_count == 1 && !e->targets[0].whole); /* 2.5 is no count, whatever the first column holds */
    tune_experiment_free(e);
    assert_int_equal(import("holes", "n", "n,t\n1,0.5\n,NaN\nNA,3\nnull,4\n"), 3);
    assert_got(e = tune_experiment_read("st/experiments/holes.json"));
    assert_true(e->inputs[0].domain.type == TUNE_DISCRETE && !e->inputs[0].required && e->inputs[0].standard.type == TUNE_VALUE_NONE);
    tune_experiment_free(e);
    assert_int_equal(import("full", "n", "n,t\n1,0.5\n2,3\n"), 2);
    assert_got(e = tune_experiment_read("st/experiments/full.json"));
    assert_true(e->inputs[0].required);
    tune_experiment_free(e);
    assert_int_equal(import("units", "n", "n,ok,t [tokens/s],x[1]\n1,2,3,4\n"), 1);
    assert_got(e = tune_experiment_read("st/experiments/units.json"));
    assert_true(e->target_count == 3 && !*e->targets[0].unit && !strcmp(e->targets[1].name, "t"));
    assert_string_equal(e->targets[1].unit, "tokens/s");
    assert_string_equal(e->targets[2].name, "x[1]");
    tune_experiment_free(e);
    units[0] = "t=bits/s";
    units[1] = "x=rows";
    assert_int_equal(import("more", "n", "n,t [tokens/s],x\n1,2,3\n"), 1);
    assert_got(e = tune_experiment_read("st/experiments/more.json"));
    assert_string_equal(e->targets[0].unit, "bits/s");
    assert_string_equal(e->targets[1].unit, "rows");
    tune_experiment_free(e);
    static const struct { const char *unit, *error; } wrong[] = {
        {"t", "`units` t: expected target=unit"}, {"tt=s", "there is no column tt, but the command names it as a target (the nearest is t)"}};
    for (int i = 0; i < 2; i++) {
        units[1] = wrong[i].unit;
        assert_int_equal(import("wrong", "n", "n,t\n1,2\n"), -1);
        assert_error_has(wrong[i].error);
    }
    units[0] = units[1] = NULL;
    assert_int_equal(import("truth", NULL, "identifier,ok,truth-t\nok.1,True,1\nok.0,False,2\n"), 2);
    assert_got(e = tune_experiment_read("st/experiments/truth.json"));
    assert_int_equal(e->inputs[0].domain.type, TUNE_BINARY);
    tune_experiment_free(e);
    assert_int_equal(import("bad", NULL, ",identifier,generatorid,a,bad-t\n0,a.1,g,1,x\n"), -1);
    assert_false(tune_file_exists("st/experiments/bad.json"));
    assert_int_equal(import("new", NULL, ",identifier,generatorid,a,new-t\n0,a.1,g,1,1\n"), -1);
    assert_error_has("st/experiments/new.json exists already");
    assert_int_equal(import("bad", NULL, ",identifier,generatorid,a,a,bad-t\n0,a.1,g,1,1,1\n"), -1);
    assert_error_has("in.csv:1: two columns have the name a");
}

struct hashed {
    uint32_t hash;
    int number;
};

static int by_hash(const void *a, const void *b)
{
    const struct hashed *x = a, *y = b;
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash) : x->number - y->number;
}

/* Two indices, or (values) two 65536ths that a second dimension has behind 5, whose entities have one hash of 32 bits. */
static void find_twins(bool values, int twins[2])
{
    enum { NUMBERS = 400000 };
    struct hashed *all = malloc(NUMBERS * sizeof *all);
    const double five = 5;
    twins[0] = -1;
    for (int i = 0; i < NUMBERS; i++) {
        tune_index index = (tune_index)i;
        double x = (double)i / 65536;
        uint64_t hash = values ? tune_hash64(&x, sizeof x, tune_hash64(&five, sizeof five, 7)) : tune_hash64(&index, sizeof index, 7);
        all[i] = (struct hashed){(uint32_t)hash, i};
    }
    qsort(all, NUMBERS, sizeof *all, by_hash);
    for (int i = 1; i < NUMBERS && twins[0] < 0; i++)
        if (all[i].hash == all[i - 1].hash)
            twins[0] = all[i - 1].number, twins[1] = all[i].number;
    free(all);
    assert_true(twins[0] >= 0);
}

/* Entities that have one hash are two all the same: by their numbers, and where there are none by all their values. */
static void one_hash(void **state)
{
    (void)state;
    int twins[2] = {0};
    char yaml[512];
    find_twins(false, twins);
    use("entitySpace: [{identifier: a, propertyDomain: {domainRange: [0, 1000], interval: 1}}, {identifier: x, propertyDomain: "
        "{domainRange: [0, 10], interval: 0.01}}]\nexperiments: [" WORK "]");
    measure("op", (tune_index)twins[0], 0, TUNE_VALID, 1, 1, "b");
    measure("op", (tune_index)twins[1], 0, TUNE_VALID, 1, 1, "b");
    assert_non_null(strstr(matching(), " 0/0 1/0"));
    find_twins(true, twins);
    snprintf(yaml, sizeof yaml, "entitySpace: [{identifier: a, propertyDomain: {values: [5]}}, {identifier: x, propertyDomain: "
             "{values: [%.17g, %.17g]}}]\nexperiments: [" WORK "]", twins[0] / 65536.0, twins[1] / 65536.0);
    use(yaml);
    measure("op", 0, 0, TUNE_VALID, 1, 1, "b");
    measure("op", 1, 0, TUNE_VALID, 1, 1, "b");
    use("entitySpace: [{identifier: a, propertyDomain: {values: [5]}}, {identifier: x, propertyDomain: {domainRange: [0, 10]}}]\n"
        "experiments: [" WORK "]");
    assert_non_null(strstr(matching(), " 0/0 1/0"));
}

/* A fixed boolean is that of imported rows too, which spell it 1. */
static void imported_boolean(void **state)
{
    (void)state;
    use("entitySpace: [{identifier: a, propertyDomain: {values: [3]}}]\nexperiments: [{actuatorIdentifier: custom_experiments, "
        "experimentIdentifier: work, parameterization: [{property: {identifier: kind}, value: true}]}]");
    struct tune_value a = tune_value_int(3), inputs[] = {a, tune_value_float(0.5), tune_value_text("1")};
    double targets[2] = {1, 1};
    uint8_t uid[16];
    results.operation = "op";
    for (int i = 0; i < 2; i++) {
        inputs[2].text = i ? "0" : "1";
        assert_ok(tune_results_measured(&results, &(struct tune_job){.entity = &a, .inputs = inputs},
                                        &(struct tune_result){.status = TUNE_VALID, .targets = targets}, true, uid));
    }
    assert_true(tune_store_refresh(store) >= 0);
    assert_string_equal(matching(), "a.3 0/0 0/-1");
}

/* ---- rows and records as they were measured ---- */

/* A measured row says where it was measured. A refused row has no targets. */
static void row_has_all(void **state)
{
    (void)state;
    enum { NAMES = 7 };
    use("entitySpace: [{identifier: a, propertyDomain: {values: [1, 2]}}]\nexperiments: [" WORK "]");
    struct tune_value a = tune_value_int(2), inputs[] = {a, tune_value_float(0.5), tune_value_text("odd")};
    double targets[2] = {7, 8};
    struct tune_result result = {.status = TUNE_VALID, .targets = targets, .started_s = 1.5e9, .seconds = 3};
    struct tune_job job = {.binding = 0, .index = 1, .repeat = 4, .entity = &a, .inputs = inputs, .provenance = {"h", "b", "w", "d"},
                           .why = "no room"};
    uint8_t uid[16];
    results.operation = "op";
    assert_ok(tune_results_measured(&results, &job, &result, true, uid));
    assert_ok(tune_results_refused(&results, &job, uid));
    assert_true(tune_store_refresh(store) >= 0);
    static const enum tune_key keys[4] = {TUNE_KEY_WEIGHTS, TUNE_KEY_DATA, TUNE_KEY_BUILD, TUNE_KEY_HOST_CLASS};
    const char *names[NAMES] = {"speed", "steps", "a"};
    for (int i = 0; i < 4; i++)
        names[3 + i] = tune_key_column(keys[i])->name;
    const struct tune_cell *c;
    struct tune_scan *scan = tune_scan_open(store, "work", names, NAMES);
    assert_got(scan);
    for (int row = 0; row < 2; row++) {
        assert_int_equal(tune_scan_next(scan, &c), 1);
        for (int i = 0; i < 4; i++)
            assert_string_equal(c[3 + i].text, ((const char *[]){"w", "d", "b", "h"})[i]);
        assert_int_equal(c[2].whole, 2);
        if (row == 0)
            assert_true(c[0].number == 7 && c[1].number == 8);
        else
            assert_true(c[0].absent && c[1].absent);
    }
    tune_scan_free(scan);
    names[0] = tune_request_column(TUNE_REQUEST_INDEX)->name;
    names[1] = tune_request_column(TUNE_REQUEST_TYPE)->name;
    assert_got(scan = tune_scan_open(store, TUNE_STORE_REQUESTS, names, 2));
    for (int row = 0; row < 2; row++) {
        assert_int_equal(tune_scan_next(scan, &c), 1);
        assert_int_equal(c[0].whole, 1);
        assert_string_equal(c[1].text, "measured");
    }
    tune_scan_free(scan);
}

/* An operation's record is read as it was written; one under another's name is refused. */
static void recorded(void **state)
{
    (void)state;
    char *text;
    size_t size;
    struct tune_operation_record r = {.id = "op-a", .space = "space-1", .status = "stopped", .started_s = 1.5e9, .ended_s = 1.6e9,
                                      .planned = 10, .measured = 1, .replayed = 2, .refused = 3, .failed = 4, .invalid = 5,
                                      .retries = 6, .until_stable = 7.5,
                                      .options = {.order = {.mode = TUNE_ORDER_SOBOL, .seed = 8, .limit = 9}, .selector = true,
                                                  .filter = TUNE_FILTER_PARTIAL, .repeat = 11, .accept = 15}}, read;
    assert_ok(tune_operation_record_write(store, &r));
    assert_ok(tune_operation_record_read(store, "op-a", &read));
    assert_true(!strcmp(read.id, "op-a") && !strcmp(read.space, "space-1") && !strcmp(read.status, "stopped"));
    assert_true(read.started_s == 1.5e9 && read.ended_s == 1.6e9 && read.planned == 10 && read.measured == 1 && read.replayed == 2);
    assert_true(read.refused == 3 && read.failed == 4 && read.invalid == 5 && read.retries == 6 && read.until_stable == 7.5);
    assert_true(read.options.order.mode == TUNE_ORDER_SOBOL && read.options.order.seed == 8 && read.options.order.limit == 9);
    assert_true(read.options.selector && !read.options.memoize && read.options.filter == TUNE_FILTER_PARTIAL);
    assert_true(read.options.repeat == 11 && read.options.accept == 15);
    tune_operation_record_free(&read);
    assert_ok(tune_file_read("st/operations/op-a.json", 1 << 16, &text, &size));
    test_write("st/operations", "op-b.json", text, size);
    free(text);
    assert_int_equal(tune_operation_record_read(store, "op-b", &read), -1);
    assert_error_has("has a wrong value or none for \"operation\"");
}

/* Nobody writes that a process was killed: an operation that runs has a lease, without one it is dead. */
static void dead(void **state)
{
    (void)state;
    struct tune_operation_record r = {.id = "op-d", .space = "space-1", .status = "running", .started_s = 1, .options = {.repeat = 1}}, read;
    struct tune_lease lease;
    static const char *const expected[] = {"dead", "running", "dead"};
    assert_ok(tune_operation_record_write(store, &r));
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            assert_ok(tune_operation_begin(store, "op-d", &lease));
        if (i == 2)
            assert_ok(tune_lease_release(&lease));
        assert_ok(tune_operation_record_read(store, "op-d", &read));
        assert_string_equal(read.status, expected[i]);
        tune_operation_record_free(&read);
    }
    strcpy(r.id, "op-e");
    assert_ok(tune_operation_record_write(store, &r));
    test_write("st/claims", "op-e", "x", 1); /* no folder: nobody can say */
    assert_int_equal(tune_operation_record_read(store, "op-e", &read), -1);
    assert_error_has("cannot open folder");
    strcpy(r.status, "finished");
    assert_ok(tune_operation_record_write(store, &r));
    assert_ok(tune_operation_record_read(store, "op-e", &read)); /* and nobody is asked */
    tune_operation_record_free(&read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_rows),
        cmocka_unit_test(csv_that_is_none),
        cmocka_unit_test_setup_teardown(csv_of_size, test_home_begin, test_home_end),
        cmocka_unit_test(csv_values),
        cmocka_unit_test(csv_written),
        cmocka_unit_test_setup_teardown(known_rows, begin, end),
        cmocka_unit_test_setup_teardown(known_of_others, begin, end),
        cmocka_unit_test_setup_teardown(known_apart, begin, end),
        cmocka_unit_test_setup_teardown(one_hash, begin, end), cmocka_unit_test_setup_teardown(imported_boolean, begin, end),
        cmocka_unit_test_setup_teardown(row_has_all, begin, end), cmocka_unit_test_setup_teardown(recorded, begin, end),
        cmocka_unit_test_setup_teardown(dead, begin, end),
        cmocka_unit_test_setup_teardown(matching_rows, begin, end),
        cmocka_unit_test_setup_teardown(matching_shared, begin, end),
        cmocka_unit_test_setup_teardown(strays, begin, end),
        cmocka_unit_test(expressions),
        cmocka_unit_test_setup_teardown(two_views, begin, end),
        cmocka_unit_test_setup_teardown(imported, begin, end),
        cmocka_unit_test_setup_teardown(made, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
