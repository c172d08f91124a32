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
    return tune_regular_check(expression) < 0 ? tune_error_prefix("LoRA's targets: ") : 0;
}
