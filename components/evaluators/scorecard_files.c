/* scorecard_files.c - the figure beside a scorecard's report. */
#include "evaluators/result_files.h"
#include "evaluators/scorecard_parts.h"

int tune_scorecard_svg(const struct tune_scorecard *card, const struct tune_verdict *v)
{
    struct tune_figure_value results[TUNE_CARD_METRICS];
    for (int m = 0; m < card->metrics; m++)
        results[m] = (struct tune_figure_value){v[m].metric->name, v[m].metric->unit, {&v[m].side[0], card->sides > 1 ? &v[m].side[1] : NULL}};
    return tune_result_svg(card->folder, card->path, results, card->metrics, card->names);
}
