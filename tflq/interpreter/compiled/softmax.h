/* TFLite's softmax of 8 bits over the last axis: kernels/tflite/softmax.py, whose tables come in the layer. Its quotient is
 * the one rule that stands here, too: a sum of exponentials has too many values for a table. */
#ifndef TFLQ_SOFTMAX_H
#define TFLQ_SOFTMAX_H

#include "map.h"

/* numerics/gemmlowp.py, product */
INLINE int64_t high_product(int64_t a, int64_t b) { return (a * b + (1 << 30)) >> 31; }

/* 1 / sum as mantissa * 2^(-31 - bits over unit): numerics/gemmlowp.py, reciprocal of 12 integer bits. */
INLINE int64_t reciprocal(int64_t sum, int32_t *over_unit)
{
    const int32_t headroom = __builtin_clz((uint32_t)sum);
    const int64_t half_denominator = (sum << headroom) >> 1;
    int64_t x = high_product(half_denominator, -1010580540) + 1515870810; /* 48/17 - 32/17 d, in 2^-29 */
    for (int i = 0; i < 3; i++) {
        x += high_product(x, (1 << 29) - high_product(half_denominator, x)) * 4;
    }
    *over_unit = 12 - headroom;
    return 2 * x < INT32_MAX ? 2 * x : INT32_MAX;
}

static void softmax(const struct layer *layer, char *arena)
{
    const int32_t least = LEAST(layer->y_least), length = layer->length;
    for (int32_t r = 0; r < layer->rows; r++) {
        const element *x = (const element *)(arena + layer->x + (int64_t)r * layer->x_row);
        element *y = (element *)(arena + layer->y + (int64_t)r * layer->y_row);
        element largest = x[0];
        for (int32_t i = 1; i < length; i++) {
            largest = x[i] > largest ? x[i] : largest;
        }
        int64_t sum = 0;
        for (int32_t i = 0; i < length; i++) {
            sum += layer->addends[(int32_t)(largest - x[i])];
        }
        int32_t over_unit;
        const int64_t mantissa = reciprocal(sum, &over_unit);
        const int32_t exponent = over_unit + 31 - 8;
        for (int32_t i = 0; i < length; i++) {
            const int64_t scaled = high_product(layer->exponentials[(int32_t)(largest - x[i])], mantissa);
            const int64_t found = (scaled + ((int64_t)1 << (exponent - 1))) >> exponent;
            y[i] = (element)((int32_t)(found < 255 ? found : 255) + least);
        }
    }
}

#endif
