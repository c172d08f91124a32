/* lora_expression.c - targets of adapters by a regular expression, as PEFT has them: re.fullmatch on
 * the module's name. */
#include <string.h>

#include "core/error.h"
#include "core/regular.h"
#include "models/lora_parts.h"

bool tune_lora_is_expression(const char *targets)
{
    return targets && strpbrk(targets, "()[]{}|*+?^$\\") != NULL;
}

int tune_lora_expression_check(const char *expression)
{
    static const char *const names[] = {"model.layers.10.self_attn.q_proj", "model.layers.10.mlp.gate_proj", "model.embed_tokens"};
    if (tune_regular_check(expression) < 0)
        return -1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tune_regular_matches(expression, names[i], true) < 0)
            return tune_error_usage("the regular expression \"%.200s\": it takes too long for a name such as %s", expression, names[i]);
    return 0;
}
