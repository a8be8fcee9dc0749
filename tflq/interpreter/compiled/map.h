/* From sums to elements: the proven map of docs/internals/exactness.md, add then multiply, and the accumulators listed
beside it. */
#ifndef TFLQ_MAP_H
#define TFLQ_MAP_H

#include "structs.h"
#include "vectors.h"

#define WIDE_MAGIC 6755399441055744.0 /* MAGIC within 2^51 */

/* The constants of a layer: ends of the clamp. Those of bytes are `bottom` and `top`, less `least`. */
struct ends {
    reals minimum, maximum;
    int32_t least, bottom, top;
};

/* The constants of one vector of channels. */
struct constants {
    reals offset, scale, low, high;
};

INLINE struct ends ends_of(const struct layer *layer)
{
    const float minimum = layer->map.minimum, maximum = layer->map.maximum;
    const int32_t least = layer->y_least;
    return (struct ends){all(minimum), all(maximum), least, (int32_t)minimum - least, (int32_t)maximum - least};
}

INLINE struct constants constants_of(const struct map *map, int32_t channel, int corrected)
{
    struct constants k = {*(const reals_at *)(map->offset + channel), *(const reals_at *)(map->scale + channel), {0}, {0}};
    if (corrected) {
        k.low = *(const reals_at *)(map->low + channel);
        k.high = *(const reals_at *)(map->high + channel);
    }
    return k;
}

/* Quantized values of sums by the float map alone, but for the ends of bytes: forms.py takes maps within 2^30. */
INLINE ints mapped(sums sum, const struct constants *k, const struct ends *ends, int corrected)
{
#ifdef DOT
    reals u = (__builtin_convertvector(sum, reals) + k->offset) * k->scale;
#else
    reals u = (sum + k->offset) * k->scale;
#endif
    if (corrected) {
        u += smaller(larger(u, k->low), k->high);
    }
#ifdef DOT
    (void)ends;
#else
    u = smaller(larger(u, ends->minimum), ends->maximum);
#endif
    return rounded(u);
}

/* Quantized values with those of the listed accumulators corrected. */
INLINE ints with_listed(const struct map *map, sums sum, int32_t channel, int32_t rows, ints found)
{
    for (int32_t row = 0; row < rows; row++) {
        const ints other = *(const ints_at *)(map->at + row * map->stride + channel);
        const ints value = *(const ints_at *)(map->value + row * map->stride + channel);
        const ints mask = __builtin_convertvector(sum, ints) == other;
        found ^= mask & (found ^ value);
    }
    return found;
}

static reals mapped_wide(const struct map *map, ints sum, int32_t channel)
{
    reals found = {0};
    for (int32_t c = 0; c < LANES; c++) {
        double u = (sum[c] + map->wide_offset[channel + c]) * map->wide_scale[channel + c];
        if (map->wide_low) {
            double v = u > map->wide_low[channel + c] ? u : map->wide_low[channel + c];
            u += v < map->wide_high[channel + c] ? v : map->wide_high[channel + c];
        }
        u = u > map->minimum ? u : map->minimum;
        u = u < map->maximum ? u : map->maximum;
        found[c] = (float)((u + WIDE_MAGIC) - WIDE_MAGIC);
    }
    return found;
}

/* Four vectors of quantized values as elements at y + y_at[0], ... */
INLINE void store_four(const ints *found, const struct ends *ends, char *y, const int32_t *y_at)
{
#ifdef DOT
    const ints bytes = in_order(packed_bytes(found, ends->least, ends->bottom, ends->top));
    UNROLL for (int k = 0; k < 4; k++) {
        memcpy(y + y_at[k], (const char *)&bytes + k * LANES, LANES);
    }
#else
    (void)ends;
    UNROLL for (int k = 0; k < 4; k++) {
        store_elements(y + y_at[k], found[k]);
    }
#endif
}

/* Quantized values by any map, less what an element 0 stands for. */
INLINE ints mapped_any(const struct layer *layer, sums from, int32_t channel)
{
    const struct map *map = &layer->map;
    ints found;
    if (map->wide_scale) {
        const reals value = mapped_wide(map, __builtin_convertvector(from, ints), channel);
#ifdef DOT
        found = __builtin_convertvector(value, ints);
#else
        found = (ints)value;
#endif
    } else {
        const struct ends ends = ends_of(layer);
        const struct constants k = constants_of(map, channel, map->low != 0);
        found = mapped(from, &k, &ends, map->low != 0);
    }
    found = with_listed(map, from, channel, map->rows[channel / LANES], found);
#ifdef DOT
    const ints least = all_ints((int32_t)map->minimum), most = all_ints((int32_t)map->maximum);
    const ints is_below = (ints)(found < least), is_above = (ints)(found > most);
    found = found ^ (is_below & (found ^ least)) ^ (is_above & (found ^ most));
    found -= layer->y_least;
#endif
    return found;
}

/* Where real numbers are clamped that have no ends, as layers.py has it: sums times factors stay far below. */
#define WIDEST_REAL 3e38f

/* Real numbers of vectors of sums, as they are. */
static __attribute__((noinline)) void store_reals(const struct map *map, const sums *from, int32_t outputs, int32_t channel,
                                                  char *arena, const int32_t *y_at)
{
    const int32_t left = map->channels - channel;
    const doubles minimum = map->minimum - (doubles){0}, maximum = map->maximum - (doubles){0};
    const int clamped = map->minimum > -WIDEST_REAL || map->maximum < WIDEST_REAL;
    doubles offset[2], scale[2], bias[2]; /* what is stored cannot change them: they stay in registers */
    UNROLL for (int h = 0; h < 2; h++) {
        const int64_t at = channel + h * LANES / 2;
        offset[h] = *(const doubles_at *)(map->wide_offset + at);
        scale[h] = *(const doubles_at *)(map->wide_scale + at);
        bias[h] = *(const doubles_at *)(map->bias + at);
    }
    for (int32_t p = 0; p < outputs; p++) {
        const ints sum = __builtin_convertvector(from[p], ints);
        half_reals found[2];
        UNROLL for (int h = 0; h < 2; h++) {
            half_ints part;
            memcpy(&part, (const char *)&sum + h * sizeof part, sizeof part);
            doubles u = (TO_DOUBLES(part) + offset[h]) * scale[h] + bias[h];
            for (int c = 0; c < LANES / 2 && clamped; c++) {
                u[c] = u[c] > minimum[c] ? u[c] : minimum[c];
                u[c] = u[c] < maximum[c] ? u[c] : maximum[c];
            }
            found[h] = __builtin_convertvector(u, half_reals);
        }
        char *y = arena + y_at[p] + 4 * channel;
        if (left >= LANES) { /* each half from its register: a whole one would wait for both in memory */
            UNROLL for (int h = 0; h < 2; h++) {
                memcpy(y + h * sizeof found[h], &found[h], sizeof found[h]);
            }
        } else {
            copy_part(y, (const char *)found, 4 * left);
        }
    }
}

/* Map vectors of sums, and store the channels that there are: where they are no whole vector, or the map is no plain one. */
static __attribute__((noinline)) void store_any(const struct layer *layer, const sums *sum, int32_t outputs, int32_t channel,
                                                char *arena, const int32_t *y_at)
{
    const int32_t left = layer->map.channels - channel;
    if (layer->map.bias) {
        store_reals(&layer->map, sum, outputs, channel, arena, y_at);
        return;
    }
    for (int32_t p = 0; p < outputs; p++) {
        store_some(arena + y_at[p] + BYTES * channel, mapped_any(layer, sum[p], channel), left);
    }
}

#endif
