/* prompt_template.c - prompt templates: parts lie in the file's text, those of text in order and apart. */
#include "templates/prompt_template.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tune_prompt_template t;
    if (tune_prompt_template_parse(&t, "template", (const char *)data, size) < 0) {
        HOLDS(tune_error_kind() == TUNE_ERROR_USAGE && !t.parts && !t.bytes);
        fuzz_refused();
        return 0;
    }
    const char *behind = t.bytes;
    int asked = 0, trained = 0;
    HOLDS(t.count > 0 && t.slot_count > 0 && t.slot_count <= TUNE_PROMPT_SLOTS);
    for (int i = 0; i < t.count; i++) {
        const struct tune_prompt_part *p = &t.parts[i];
        HOLDS(p->size > 0 && p->slot >= -1 && p->slot < t.slot_count);
        HOLDS(p->text >= t.bytes && p->text + p->size <= t.bytes + size);
        if (p->slot >= 0) {
            HOLDS(p->text == t.slots[p->slot] && strlen(p->text) == p->size && !strpbrk(p->text, "{}\n"));
            asked |= 1;
            trained |= p->trained;
        } else {
            HOLDS(p->text >= behind);
            behind = p->text + p->size;
        }
    }
    HOLDS(asked && trained);
    tune_prompt_template_free(&t);
    return 0;
}
