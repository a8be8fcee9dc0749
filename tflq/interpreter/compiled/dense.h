/* Dense convolutions and fully connected layers. */
#ifndef TFLQ_DENSE_H
#define TFLQ_DENSE_H

#include "map.h"

typedef void dense_block(const struct layer *, char *, const int32_t *, const int32_t *, const factors *, int32_t);
#define NAMED(p, b, taps) NAMED_(p, b, taps)
#define NAMED_(p, b, taps) dense_##p##_##b##_##taps

/* Blocks of 1 output; of 4, each with its own place; of 8 or 12 in fours, with one tap at a time or three. */
#define TAPS 1
#define P 1
#define PLACES 1
#define B 1
#include "dense_block.h"
#define B 2
#include "dense_block.h"
#define B 3
#include "dense_block.h"
#if LANES == 16
#define B 4
#include "dense_block.h"
#endif
#undef P
#undef PLACES
#define P 4
#define PLACES 4
#define B 1
#include "dense_block.h"
#define B 2
#include "dense_block.h"
#define B 3
#include "dense_block.h"
#if LANES == 16
#define B 4
#include "dense_block.h"
#endif
#undef P
#undef PLACES

/* BLOCKS: vectors of channels at a time. In fours they are less, so that their weights stay in the first-level cache. */
#if LANES == 16
#define P 24
#define PLACES 6
#define B 1
#include "dense_block.h"
#undef TAPS
#define TAPS 3
#define B 1
#include "dense_block.h"
#undef P
#undef PLACES
#define P 12
#define PLACES 3
#define B 2
#include "dense_block.h"
#undef TAPS
#define TAPS 1
#define B 2
#include "dense_block.h"
#define BLOCKS_IN_FOURS 2
#define BLOCKS 4
#define MOST_TAPS 3
static dense_block *const one[] = {dense_1_1_1, dense_1_2_1, dense_1_3_1, dense_1_4_1};
static dense_block *const four[] = {dense_4_1_1, dense_4_2_1, dense_4_3_1, dense_4_4_1};
static dense_block *const many[] = {dense_24_1_1, dense_12_2_1, dense_4_3_1, dense_4_4_1};
static dense_block *const many_of_three[] = {dense_24_1_3, dense_12_2_3};
static const int32_t together[] = {24, 12, 4, 4};
#else
#define P 8
#define PLACES 2
#define B 1
#include "dense_block.h"
#define BLOCKS_IN_FOURS 3
#define BLOCKS 3
#define MOST_TAPS 1
static dense_block *const one[] = {dense_1_1_1, dense_1_2_1, dense_1_3_1};
static dense_block *const four[] = {dense_4_1_1, dense_4_2_1, dense_4_3_1};
static dense_block *const many[] = {dense_8_1_1, dense_4_2_1, dense_4_3_1};
static dense_block *const *const many_of_three = many;
static const int32_t together[] = {8, 4, 4};
#endif

static void dense(const struct layer *layer, char *arena, int32_t pixels)
{
    const factors *weights = layer->weights;
    for (int32_t channel = 0; channel < layer->map.channels; channel += layer->blocks * LANES) {
        int32_t vectors = (layer->map.channels - channel + LANES - 1) / LANES;
        vectors = vectors < layer->blocks ? vectors : layer->blocks;
        dense_block *block = one[vectors - 1];
        int32_t size = 1;
        if (pixels >= together[vectors - 1] && layer->apart) {
            block = (layer->taps == 3 ? many_of_three : many)[vectors - 1];
            size = together[vectors - 1];
        } else if (pixels >= 4) {
            block = four[vectors - 1];
            size = 4;
        }
        for (int32_t i = 0; i < pixels; i += size) {
            const int32_t first = i + size <= pixels ? i : pixels - size; /* the last block overlaps the one before */
            block(layer, arena, layer->x_at + first, layer->y_at + first, weights, channel);
        }
        weights += (int64_t)layer->groups * layer->taps * vectors;
    }
}

#endif
