/* get_loss.c - the loss that the flags describe. */
#include "flags/flags.h"
#include "losses/loss.h"

struct tune_loss *tune_get_loss(const struct tune_flags *flags, struct tune_model *m)
{
    struct tune_loss *l = tune_loss_new(m, true);
    if (l)
        tune_loss_smooth(l, flags->label_smoothing);
    return l;
}
