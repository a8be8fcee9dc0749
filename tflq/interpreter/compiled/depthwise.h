/* Depthwise convolutions. Blocks of outputs outside, channels inside: what neighboring windows share stays in the
 * first-level cache, of which the same channels of many pixels would use few sets. */
#ifndef TFLQ_DEPTHWISE_H
#define TFLQ_DEPTHWISE_H

#include "map.h"

#ifdef DOT
/* Bytes: a vector holds 4 * LANES channels. Four taps are interleaved, so that each lane has four taps of one channel,
 * as the dot product takes them. The vectors of a group of taps are those of the channels 16 * quarter + 4 * q + 0 .. 3:
 * four vectors of sums, packed to bytes, have the channels in order again.
 *
 * Outputs in pairs (layer->outputs is 2) lie below each other: windows three rows high, one row apart, share the four rows
 * of each of their columns, interleaved once. The factors of the upper one have a zero at the end, of the lower in front. */
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

/* Bytes of four taps next to each other. */
INLINE void interleave(const ints *tap, ints *found)
{
    const whole_vector low = V(unpacklo_epi8)((whole_vector)tap[0], (whole_vector)tap[1]);
    const whole_vector high = V(unpackhi_epi8)((whole_vector)tap[0], (whole_vector)tap[1]);
    const whole_vector other_low = V(unpacklo_epi8)((whole_vector)tap[2], (whole_vector)tap[3]);
    const whole_vector other_high = V(unpackhi_epi8)((whole_vector)tap[2], (whole_vector)tap[3]);
    found[0] = (ints)V(unpacklo_epi16)(low, other_low);
    found[1] = (ints)V(unpackhi_epi16)(low, other_low);
    found[2] = (ints)V(unpacklo_epi16)(high, other_high);
    found[3] = (ints)V(unpackhi_epi16)(high, other_high);
}

/* ABREAST outputs: `outputs` at each place of an input. */
INLINE void depthwise_block(const struct layer *layer, char *arena, const int32_t *x_at, const int32_t *y_at, int32_t most,
                            int32_t pieces, int32_t outputs)
{
    const struct map *map = &layer->map;
    const int32_t groups = layer->groups, *steps = layer->steps;
    const int64_t apart = layer->piece_apart;
    const ints_at *weights = layer->weights;
    const struct ends ends = ends_of(layer);
    const char *x[ABREAST];
    char *y[ABREAST];
    UNROLL for (int j = 0; j < ABREAST; j++) {
        const int32_t place = j / outputs < most ? j / outputs : most - 1;
        x[j / outputs] = arena + x_at[place];
        y[j] = arena + y_at[place * outputs + j % outputs];
    }
    for (int32_t channel = 0; channel < map->channels; channel += CHANNELS) {
        ints a[ABREAST][4];
        UNROLL for (int j = 0; j < ABREAST; j++) {
            UNROLL for (int q = 0; q < 4; q++) {
                a[j][q] = ((const ints_at *)(layer->start + channel))[q];
            }
        }
        for (int32_t g = 0; g < groups; g++, weights += 4 * outputs) {
            ints w[8];
            UNROLL for (int k = 0; k < 4 * outputs; k++) {
                w[k] = weights[k];
                __asm__("" : "+v"(w[k])); /* else they are loaded again for each output */
            }
            UNROLL for (int j = 0; j < ABREAST; j += outputs) {
                ints tap[4], value[4];
                UNROLL for (int t = 0; t < 4; t++) {
                    tap[t] = load_pieces(x[j / outputs] + steps[4 * g + t] + channel, pieces, apart);
                }
                interleave(tap, value);
                UNROLL for (int k = 0; k < 4 * outputs; k++) {
                    a[j + k / 4][k % 4] = DOT(a[j + k / 4][k % 4], value[k % 4], w[k]);
                }
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
            const ints_at found = (ints)packed_bytes(a[j], ends.least, ends.bottom, ends.top);
            if (left >= CHANNELS) {
                *(ints_at *)(y[j] + channel) = found;
            } else {
                copy_part(y[j] + channel, (const char *)&found, left);
            }
        }
    }
}

static void depthwise(const struct layer *layer, char *arena, int32_t places)
{
    if (layer->outputs == 2) {
        for (int32_t i = 0; i < places; i += ABREAST / 2) {
            depthwise_block(layer, arena, layer->x_at + i, layer->y_at + 2 * i, places - i, 1, 2);
        }
        return;
    }
    for (int32_t i = 0; i < places; i += ABREAST) {
        const int32_t *x_at = layer->x_at + i, *y_at = layer->y_at + i;
        switch (layer->pieces) {
        case 1:
            depthwise_block(layer, arena, x_at, y_at, places - i, 1, 1);
            break;
        case 2:
            depthwise_block(layer, arena, x_at, y_at, places - i, 2, 1);
            break;
        case 4:
            depthwise_block(layer, arena, x_at, y_at, places - i, 4, 1);
            break;
        default:
            depthwise_block(layer, arena, x_at, y_at, places - i, LANES / 2, 1);
        }
    }
}

#else
#include "depthwise_reals.h"
#endif

#endif
