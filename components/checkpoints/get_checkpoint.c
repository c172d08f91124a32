/* get_checkpoint.c - checkpoints by the flags, in the run's folder. */
#include <unistd.h>

#include "checkpoints/card.h"
#include "checkpoints/checkpoint.h"
#include "comm/comm.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "loggers/logger.h"

#define AT_TERMINAL_S 600 /* where somebody may see that the disk is full, and free some */

struct tune_checkpoint *tune_get_checkpoint(const struct tune_flags *flags, struct tune_logger *log)
{
    char folder[TUNE_PATH_MAX];
    struct tune_checkpoint_options options = flags->checkpoint;
    if (tune_model_find(flags->model, folder) < 0)
        return NULL;
    options.comm = flags->comm;
    options.run_folder = tune_logger_folder(log);
    options.source = folder;
    options.eval_every = flags->eval.every;
    options.resume = flags->resume_checkpoint;
    options.adapter = flags->adapter;
    options.add_tokens = flags->add_tokens;
    options.overwrite = flags->log.overwrite;
    options.unsaved = !flags->save;
    options.stop_signal = flags->stop_signal;
    if (options.wait_for_disk < 0)
        options.wait_for_disk = isatty(STDOUT_FILENO) ? AT_TERMINAL_S : 0;
    if (!flags->log.stop_on_divergence)
        options.diverged = NULL;
    bool saves = tune_flags_saves(flags) && !tune_comm_follows(flags->comm), card_wanted = flags->card && saves;
    options.late = !saves;
    options.log = log;
    options.failure = tune_comm_follows(flags->comm) ? NULL : flags->failure;
    struct tune_checkpoint *c = tune_checkpoint_new(&options);
    struct tune_card *card = c && card_wanted ? tune_get_card(flags, folder) : NULL;
    if (c && card_wanted && !card) {
        tune_checkpoint_free(c);
        return NULL;
    }
    if (card)
        tune_checkpoint_set_card(c, card);
    return c;
}
