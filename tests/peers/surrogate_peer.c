/* surrogate_peer.c - our Gaussian process for surrogate_peer.py, which has that of scikit-learn.
 *
 *     surrogate_peer < rows
 *
 * Input: dimensions, rows, points, 1 if parameters follow; then the parameters, the rows (a point and its target), the points.
 * Output: the logarithm of the likelihood and the parameters; then mean and deviation of each point. */
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "sweeps/surrogate/surrogate.h"

enum { DIMENSIONS = 16, MOST = 1000 };

static double read_number(void)
{
    double value;
    if (scanf("%lf", &value) != 1)
        exit(2);
    return value;
}

int main(void)
{
    static double x[MOST * DIMENSIONS], y[MOST], points[MOST * DIMENSIONS];
    static struct tune_prediction predictions[MOST];
    double parameters[2 + DIMENSIONS];
    const int numbers[DIMENSIONS] = {0};
    int dimensions = (int)read_number(), rows = (int)read_number(), count = (int)read_number(), given = (int)read_number();
    if (dimensions > DIMENSIONS || rows > MOST || count > MOST)
        return 2;
    struct tune_surrogate_options o = {.dimensions = dimensions, .categories = numbers, .parameters = given ? parameters : NULL};
    for (int i = 0; i < given * (2 + dimensions); i++)
        parameters[i] = read_number();
    for (int i = 0; i < rows; i++) {
        for (int d = 0; d < dimensions; d++)
            x[i * dimensions + d] = read_number();
        y[i] = read_number();
    }
    for (int i = 0; i < count * dimensions; i++)
        points[i] = read_number();
    struct tune_surrogate *s = tune_surrogate_fit(&o, x, y, rows);
    if (!s || tune_surrogate_predict(s, points, count, predictions) < 0) {
        fprintf(stderr, "%s\n", tune_error_message());
        return 1;
    }
    printf("%.17g", tune_surrogate_likelihood(s));
    for (int i = 0; i < 2 + dimensions; i++)
        printf(" %.17g", tune_surrogate_parameters(s)[i]);
    printf("\n");
    for (int i = 0; i < count; i++)
        printf("%.17g %.17g\n", predictions[i].mean, predictions[i].deviation);
    tune_surrogate_free(s);
    return 0;
}
