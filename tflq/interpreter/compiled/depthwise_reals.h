/* Depthwise convolutions of real numbers, LANES channels at a time. */
#define DEPTHWISE_PIXELS 16
#define DEPTHWISE_TAPS 9
#define ABREAST 4 /* pixels whose sums run at the same time */
#define MOST_NEIGHBOURS 5

INLINE void finish_as(const struct layer *layer, const reals *sum, int32_t channel, int32_t pixels, char *const *y,
                      int corrected, int32_t rows)
{
    const struct ends ends = ends_of(layer);
    const struct constants k = constants_of(&layer->map, channel, corrected);
    for (int32_t p = 0; p < pixels; p++) {
        const ints found = with_listed(&layer->map, sum[p], channel, rows, mapped(sum[p], &k, &ends, corrected));
        store_elements(y[p] + BYTES * channel, found);
    }
}

/* Map the sums of a vector of channels, and store them at y[pixel]. */
static __attribute__((noinline)) void finish(const struct layer *layer, const reals *sum, int32_t channel, int32_t pixels, char *const *y)
{
    const int32_t rows = layer->map.rows[channel / LANES];
    if (layer->map.channels - channel < LANES || layer->map.wide_scale) {
        for (int32_t p = 0; p < pixels; p++) {
            const int32_t here = 0;
            store_any(layer, &sum[p], 1, channel, y[p], &here);
        }
    } else if (layer->map.low) {
        finish_as(layer, sum, channel, pixels, y, 1, rows);
    } else if (rows) {
        finish_as(layer, sum, channel, pixels, y, 0, rows);
    } else {
        finish_as(layer, sum, channel, pixels, y, 0, 0);
    }
}

INLINE void depthwise_as(const struct layer *layer, char *arena, int32_t pixels, int32_t taps)
{
    reals sums_of[DEPTHWISE_PIXELS];
    const char *x[DEPTHWISE_PIXELS];
    char *y[DEPTHWISE_PIXELS];
    const int32_t *steps = layer->steps;
    const int32_t channels = layer->map.channels;
    for (int32_t i = 0; i < pixels; i += DEPTHWISE_PIXELS) {
        const int32_t size = pixels - i < DEPTHWISE_PIXELS ? pixels - i : DEPTHWISE_PIXELS;
        for (int32_t p = 0; p < DEPTHWISE_PIXELS; p++) {
            const int32_t n = p < size ? i + p : pixels - 1;
            x[p] = arena + layer->x_at[n];
            y[p] = arena + layer->y_at[n];
        }
        const reals_at *weights = layer->weights;
        for (int32_t channel = 0; channel < channels; channel += LANES, weights += taps) {
            int64_t step[DEPTHWISE_TAPS] = {0};
            reals w[DEPTHWISE_TAPS] = {{0}};
            UNROLL for (int32_t t = 0; t < DEPTHWISE_TAPS && t < taps; t++) {
                step[t] = steps[t] + BYTES * channel;
                w[t] = weights[t];
            }
            for (int32_t p = 0; p < size; p += ABREAST) {
                reals sum[ABREAST] = {{0}};
                UNROLL for (int32_t t = 0; t < DEPTHWISE_TAPS && t < taps; t++) {
                    UNROLL for (int32_t k = 0; k < ABREAST; k++) {
                        sum[k] = plus_product(sum[k], *(const reals_at *)(x[p + k] + step[t]), w[t]);
                    }
                }
                for (int32_t t = DEPTHWISE_TAPS; t < taps; t++) {
                    const int64_t later = steps[t] + BYTES * channel;
                    UNROLL for (int32_t k = 0; k < ABREAST; k++) {
                        sum[k] = plus_product(sum[k], *(const reals_at *)(x[p + k] + later), weights[t]);
                    }
                }
                UNROLL for (int32_t k = 0; k < ABREAST; k++) {
                    sums_of[p + k] = sum[k];
                }
            }
            finish(layer, sums_of, channel, size, y);
        }
    }
}

INLINE reals plus_three(reals sum, reals a, reals u, reals b, reals v, reals c, reals w)
{
    return plus_product(plus_product(plus_product(sum, a, u), b, v), c, w);
}

/* The same for kernels of 3 x 3, neighbors of a row at a time: each input is loaded once for the three outputs that read
 * it. */
INLINE void depthwise_rows(const struct layer *layer, char *arena, int32_t pixels, int32_t neighbors)
{
    reals sums_of[MOST_NEIGHBOURS * ABREAST];
    const char *x[ABREAST];
    char *y[MOST_NEIGHBOURS * ABREAST];
    const int32_t channels = layer->map.channels, pixel = layer->x_pixel;
    const int64_t second = layer->steps[3], third = layer->steps[6];
    for (int32_t i = 0; i < pixels; i += neighbors * ABREAST) {
        const int32_t left = (pixels - i) / neighbors, blocks = left < ABREAST ? left : ABREAST;
        for (int32_t p = 0; p < blocks; p++) {
            x[p] = arena + layer->x_at[i + p * neighbors];
        }
        for (int32_t p = 0; p < blocks * neighbors; p++) {
            y[p] = arena + layer->y_at[i + p];
        }
        const reals_at *w = layer->weights;
        for (int32_t channel = 0; channel < channels; channel += LANES, w += 9) {
            const reals w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5], w6 = w[6], w7 = w[7], w8 = w[8];
            for (int32_t p = 0; p < blocks; p++) {
                reals sum[MOST_NEIGHBOURS + 2] = {{0}};
                const char *from = x[p] + BYTES * channel;
                UNROLL for (int32_t j = 0; j < neighbors + 2; j++, from += pixel) {
                    const reals a = *(const reals_at *)from;
                    const reals b = *(const reals_at *)(from + second);
                    const reals c = *(const reals_at *)(from + third);
                    sum[j] = plus_three(sum[j], a, w0, b, w3, c, w6); /* sums that no output has are not computed */
                    if (j > 0) {
                        sum[j - 1] = plus_three(sum[j - 1], a, w1, b, w4, c, w7);
                    }
                    if (j > 1) {
                        sum[j - 2] = plus_three(sum[j - 2], a, w2, b, w5, c, w8);
                    }
                }
                UNROLL for (int32_t k = 0; k < neighbors; k++) {
                    sums_of[p * neighbors + k] = sum[k];
                }
            }
            finish(layer, sums_of, channel, blocks * neighbors, y);
        }
    }
}

static void depthwise(const struct layer *layer, char *arena, int32_t pixels)
{
    switch (layer->neighbors) {
    case 3:
        depthwise_rows(layer, arena, pixels, 3);
        return;
    case 4:
        depthwise_rows(layer, arena, pixels, 4);
        return;
    case 5:
        depthwise_rows(layer, arena, pixels, 5);
        return;
    }
    if (layer->groups == DEPTHWISE_TAPS) {
        depthwise_as(layer, arena, pixels, DEPTHWISE_TAPS);
    } else {
        depthwise_as(layer, arena, pixels, layer->groups);
    }
}
