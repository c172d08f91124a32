/* card.h - the model card of a checkpoint: README.md with front matter that the Hub reads. Private
 * to this folder.
 *
 * It says base, data, what was trained, losses, options, the command to repeat it, and the licence
 * that the base's own card names. A card is for other people: of paths outside the working folder
 * it has the last name only, and it names no machine. It has no dates, so the same run gives the
 * same card.
 *
 * Its last line is a comment with a hash of all that stands before it. A text that has another hash
 * was edited, and is never replaced. */
#ifndef TUNE_CHECKPOINTS_CARD_H
#define TUNE_CHECKPOINTS_CARD_H

#include <stdbool.h>
#include <stdio.h>

#include "core/progress.h"

struct tune_checkpoint;
struct tune_flags;
struct tune_logger;
struct tune_model;

/* The parts of a card that stay the same during a run. It owns its strings. */
struct tune_card {
    char *program;        /* the recipe: "finetune_full" */
    char *base;           /* the name of the base's folder */
    char *hub_id;         /* its id on the Hub; NULL: unknown */
    char *model;          /* what the command calls it: hub_id, or its folder */
    char *data;           /* Hub ids of the data sets, each with a newline behind it; "": none */
    char *options;        /* rows of a table: options that differ from their defaults */
    char *command;        /* the command that repeats the run */
    /* of the base's card: entries, each with a newline behind it; NULL: it names none */
    char *license, *license_name, *license_link;
    char *unread;         /* why the base's card was not read; NULL: it was */
    bool license_file;    /* the base's folder has a file LICENSE */
};

/* tune_get_card - what the flags say; folder: that of the base. NULL with an error: no memory.
 * tune_card_free - free it; NULL is fine. */
struct tune_card *tune_get_card(const struct tune_flags *flags, const char *folder);
void tune_card_free(struct tune_card *c);

/* tune_card_write - write README.md into a checkpoint that is being made.
 * tune_card_renew - write it again in a checkpoint, if it is there and was not edited. Both: 0, or
 * -1 with an error. */
int tune_card_write(const struct tune_card *c, const char *folder, struct tune_model *m,
                    const struct tune_logger *log, const struct tune_progress *at);
int tune_card_renew(const struct tune_card *c, const char *folder, struct tune_model *m,
                    const struct tune_logger *log, const struct tune_progress *at);

/* tune_checkpoint_set_card - write this card into checkpoints from now on. It then belongs to c,
 * which has a log. */
void tune_checkpoint_set_card(struct tune_checkpoint *c, struct tune_card *card);

/* tune_card_cell - print a text as code in a cell of a Markdown table. */
void tune_card_cell(FILE *out, const char *text);

#endif
