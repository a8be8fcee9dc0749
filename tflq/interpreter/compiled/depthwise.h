/* Depthwise convolutions. Blocks of outputs outside, channels inside: what neighbouring windows share stays in the
 * first-level cache, of which the same channels of many pixels would use few sets. */
#ifndef TFLQ_DEPTHWISE_H
#define TFLQ_DEPTHWISE_H

#include "map.h"

#ifdef DOT
/* Bytes: a vector holds 4 * LANES channels. Four factors for each tap have the weight of one byte in each lane and zeros
 * beside it, so that sums q are those of the channels 4 * lane + q, and nothing has to be moved. */
#define CHANNELS (4 * LANES)
#if LANES == 16
#define ABREAST 4 /* outputs whose sums run at the same time */
#else
#define ABREAST 2
#endif

/* A vector of bytes in so many pieces. */
INLINE ints load_pieces(const char *at, int32_t pieces, int64_t apart)
{
    if (pieces == 1) {
        return *(const ints_at *)at;
    }
#ifdef JOINED
    if (pieces == 2) {
        return JOINED(HALF(at), HALF(at + apart));
    }
    if (pieces == 4) {
        return JOINED(QUARTERS(at, apart), QUARTERS(at + 2 * apart, apart));
    }
#endif
    longs found;
    UNROLL for (int i = 0; i < LANES / 2; i++) {
        int64_t part;
        memcpy(&part, at + i / (LANES / 2 / pieces) * apart + i % (LANES / 2 / pieces) * 8, sizeof part);
        found[i] = part;
    }
    return (ints)found;
}

/* Map a vector of sums in place: for the vectors where `mapped` does not say it all. */
static __attribute__((noinline)) void map_any(const struct layer *layer, sums *sum, int32_t channel)
{
    *sum = (sums)mapped_any(layer, *sum, channel) + layer->y_least;
}

INLINE void depthwise_block(const struct layer *layer, char *arena, const int32_t *x_at, const int32_t *y_at, int32_t most,
                            int32_t pieces)
{
    const struct map *map = &layer->map;
    const int32_t taps = layer->groups, *steps = layer->steps;
    const int64_t apart = layer->piece_apart;
    const ints_at *w = layer->weights;
    const struct ends ends = ends_of(layer);
    const char *x[ABREAST];
    char *y[ABREAST];
    UNROLL for (int j = 0; j < ABREAST; j++) {
        const int32_t n = j < most ? j : most - 1;
        x[j] = arena + x_at[n];
        y[j] = arena + y_at[n];
    }
    for (int32_t channel = 0; channel < map->channels; channel += CHANNELS) {
        ints a[ABREAST][4];
        UNROLL for (int j = 0; j < ABREAST; j++) {
            UNROLL for (int q = 0; q < 4; q++) {
                a[j][q] = ((const ints_at *)(layer->start + channel))[q];
            }
        }
        _Pragma("GCC unroll 3") for (int32_t t = 0; t < taps; t++, w += 4) {
            const int64_t step = steps[t] + channel;
            ints w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
            __asm__("" : "+v"(w0), "+v"(w1), "+v"(w2), "+v"(w3)); /* else they are loaded again for each output */
            UNROLL for (int j = 0; j < ABREAST; j++) {
                const ints value = load_pieces(x[j] + step, pieces, apart);
                a[j][0] = DOT(a[j][0], value, w0);
                a[j][1] = DOT(a[j][1], value, w1);
                a[j][2] = DOT(a[j][2], value, w2);
                a[j][3] = DOT(a[j][3], value, w3);
            }
        }
        UNROLL for (int q = 0; q < 4; q++) {
            const int32_t from = channel + q * LANES;
            if (map->wide_scale) {
                UNROLL for (int j = 0; j < ABREAST; j++) {
                    ints sum = a[j][q];
                    map_any(layer, &sum, from);
                    a[j][q] = sum;
                }
                continue;
            }
            const int32_t rows = map->rows[from / LANES];
            if (map->low) {
                const struct constants k = constants_of(map, from, 1);
                UNROLL for (int j = 0; j < ABREAST; j++) {
                    a[j][q] = with_listed(map, a[j][q], from, rows, mapped(a[j][q], &k, &ends, 1));
                }
            } else {
                const struct constants k = constants_of(map, from, 0);
                UNROLL for (int j = 0; j < ABREAST; j++) {
                    a[j][q] = with_listed(map, a[j][q], from, rows, mapped(a[j][q], &k, &ends, 0));
                }
            }
        }
        const int32_t left = map->channels - channel;
        UNROLL for (int j = 0; j < ABREAST; j++) {
            const ints_at found = in_turn(packed_bytes(a[j], ends.least, ends.bottom, ends.top));
            if (left >= CHANNELS) {
                *(ints_at *)(y[j] + channel) = found;
            } else {
                copy_part(y[j] + channel, (const char *)&found, left);
            }
        }
    }
}

static void depthwise(const struct layer *layer, char *arena, int32_t pixels)
{
    for (int32_t i = 0; i < pixels; i += ABREAST) {
        const int32_t *x_at = layer->x_at + i, *y_at = layer->y_at + i;
        switch (layer->pieces) {
        case 1:
            depthwise_block(layer, arena, x_at, y_at, pixels - i, 1);
            break;
        case 2:
            depthwise_block(layer, arena, x_at, y_at, pixels - i, 2);
            break;
        case 4:
            depthwise_block(layer, arena, x_at, y_at, pixels - i, 4);
            break;
        default:
            depthwise_block(layer, arena, x_at, y_at, pixels - i, LANES / 2);
        }
    }
}

#else
#include "depthwise_reals.h"
#endif

#endif
