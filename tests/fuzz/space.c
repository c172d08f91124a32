/* space.c - a space file, YAML or JSON (the first byte says which), read, counted, listed in every order and described. */
#include "fuzz.h"
#include "sweeps/spaces/order.h"

static FILE *nowhere;

/* Entity i is found at i, is in the space where the constraints say so, and has an id. */
static void ask_entity(const struct tune_space *s, tune_index i, struct tune_value *v)
{
    char text[64];
    tune_index at;
    tune_space_entity(s, i, v);
    HOLDS(tune_space_find(s, v, &at) == 1 && at == i);
    HOLDS(tune_space_has(s, v) == (tune_space_allowed(s, v) == 1));
    HOLDS(tune_entity_identifier(s->names, v, s->count, text, sizeof text) > 0 && memchr(text, 0, sizeof text));
    if (tune_space_allowed(s, v) < 0)
        fuzz_refused();
}

static void ask_domain(const struct tune_domain *d, const struct tune_domain *other)
{
    char why[200] = "";
    struct tune_value v;
    if (tune_domain_draw(d, 0.3, &v) < 0)
        fuzz_refused();
    else
        HOLDS(tune_domain_has(d, &v));
    int within = tune_domain_within(d, other, why, sizeof why);
    HOLDS(within == 1 || (within == 0 && why[0]));
}

/* The first entities of an order; where few are allowed, drawing more may take long. */
static void ask_order(const struct tune_space *s, enum tune_order_mode mode, int64_t limit)
{
    const struct tune_value *v;
    const bool grouped = mode == TUNE_ORDER_SEQUENTIAL_GROUPED || mode == TUNE_ORDER_RANDOM_GROUPED;
    struct tune_order_options o = {.mode = mode, .seed = 3, .limit = limit, .grouping = s->names, .group_count = grouped};
    struct tune_order *order = tune_order_new(s, &o);
    int more = order ? 1 : -1, count = 0, most = mode < TUNE_ORDER_SOBOL ? 40 : 2;
    while (more == 1 && count < most) {
        more = tune_order_next(order, &v);
        count += more == 1;
        HOLDS(more != 1 || tune_space_has(s, v));
    }
    HOLDS(limit < 0 || count <= limit);
    if (more < 0)
        fuzz_refused();
    tune_order_free(order);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!nowhere)
        HOLDS((nowhere = fopen("/dev/null", "w")));
    if (size < 1)
        return 0;
    fuzz_hold_libyaml();
    struct tune_document *d = tune_document_parse("space", (const char *)data + 1, size - 1, data[0] & 1);
    struct tune_space *s = d ? tune_space_parse(d) : NULL;
    if (!s) {
        HOLDS(tune_error_kind() == TUNE_ERROR_USAGE);
        fuzz_refused();
        return 0;
    }
    HOLDS(s->count > 0 && strspn(s->id, "0123456789abcdef") == 6 && strspn(s->id, "0123456789") < 6);
    bool quick = s->constraint_count == 0 || (s->size > 0 && s->size <= 2000);
    struct tune_value *v = calloc((size_t)s->count, sizeof *v);
    for (tune_index i = 0; s->size && s->size != TUNE_INDEX_MAX && i < 20; i++)
        ask_entity(s, s->size < 20 ? i % s->size : (s->size - 1) / 19 * i, v);
    for (int i = 0; i < s->count && i < 4; i++)
        ask_domain(&s->dimensions[i].domain, &s->dimensions[s->count - 1 - i].domain);
    for (int mode = TUNE_ORDER_SEQUENTIAL; quick && mode <= TUNE_ORDER_SOBOL; mode++) {
        ask_order(s, (enum tune_order_mode)mode, 4);
        ask_order(s, (enum tune_order_mode)mode, -1);
    }
    if (quick && tune_space_describe_entities(s, 2, nowhere) < 0)
        fuzz_refused();
    free(v);
    tune_space_free(s);
    return 0;
}
