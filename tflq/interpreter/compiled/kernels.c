/* Layers of 8-bit integers over many samples, exactly: what Engine(backend="c") compiles once on a machine.
 *
 * Nothing here knows a network or a vendor's rounding: shapes, weights and tables come in structs. Sums are exact
 * integers; a sum becomes a quantized value by a float map that was proven equal to the integer rule (docs/exactness.md)
 * or by a table that the rule filled.
 *
 * A tensor lies in the arena as channels of pixels of rows, with a border that holds the padding value for ever: either
 * as bytes, quantized value - least value of the type, or as real numbers, the quantized values themselves. */
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif

typedef float reals __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
/* The same in memory: at any place. */
typedef reals reals_at __attribute__((aligned(4), may_alias));
typedef ints ints_at __attribute__((aligned(4), may_alias));

/* The one place where an instruction is named: four products of unsigned and signed bytes, added to each lane. Without it
 * dense layers multiply real numbers. */
#if !defined(WITHOUT_DOT) && LANES == 16 && defined(__AVX512VNNI__)
#include <immintrin.h>
#define DOT(sum, x, w) (ints) _mm512_dpbusd_epi32((__m512i)(sum), _mm512_set1_epi32(x), (__m512i)(w))
#elif !defined(WITHOUT_DOT) && LANES == 8 && defined(__AVXVNNI__)
#include <immintrin.h>
#define DOT(sum, x, w) (ints) _mm256_dpbusd_avx_epi32((__m256i)(sum), _mm256_set1_epi32(x), (__m256i)(w))
#endif

#define INLINE static inline __attribute__((always_inline))

/* sum + x * w of whole numbers whose sums stay below 2^24: exact, so one rounding or two are the same. Everywhere else
 * the compiler may not fuse (-ffp-contract=off): maps are proven for a product that is rounded, then a sum. */
INLINE reals plus_product(reals sum, reals x, reals w)
{
#ifdef __FMA__
    for (int c = 0; c < LANES; c++) {
        sum[c] = __builtin_fmaf(x[c], w[c], sum[c]);
    }
    return sum;
#else
    return sum + x * w;
#endif
}

INLINE reals plus_three(reals sum, reals a, reals u, reals b, reals v, reals c, reals w)
{
    return plus_product(plus_product(plus_product(sum, a, u), b, v), c, w);
}

#ifdef DOT
#define GROUP 4
typedef ints sums;
typedef ints_at factors;
typedef int32_t element;
#define MULTIPLY_ADD(sum, x, w) DOT(sum, x, w)
#else
#define GROUP 1
typedef reals sums;
typedef reals_at factors;
typedef float element;
#define MULTIPLY_ADD(sum, x, w) plus_product(sum, (x) - (reals){0}, w)
#endif

#define UNROLL _Pragma("GCC unroll 16")

/* How an accumulator becomes a quantized value: StepMap of numerics/step_map.py, for channels in whole vectors. */
struct map {
    const float *offset, *scale, *low, *high; /* low and high: NULL where there is no correction */
    const double *wide_offset, *wide_scale, *wide_low, *wide_high; /* instead of them, where not NULL */
    const int32_t *at, *value; /* accumulators that the map gets wrong: rows of all channels */
    const int32_t *rows;       /* how many of them each vector of channels needs */
    int32_t channels, stride;
    float minimum, maximum;
};

enum kind { READ, WRITE, DENSE, DEPTHWISE, AVERAGE, LARGEST, PAIR, TABLE };

struct layer {
    int32_t kind, slot;       /* slot: of the input or output array that READ and WRITE move */
    int64_t x, second, y;     /* first pixel inside the border, in bytes of a sample's arena */
    int32_t x_real, second_real, y_real;
    int32_t x_least, second_least, y_least; /* least value of the types */
    int32_t x_row, second_row, y_row;       /* bytes between rows */
    int32_t rows, length;                   /* of what moves or is mapped one by one: rows of so many elements */
    int32_t pixels, blocks;                 /* outputs; vectors of channels at a time */
    int32_t groups;                         /* of GROUP products each, for one output */
    int32_t neighbours;                     /* outputs of a row that a depthwise layer computes together; 0 for others */
    int32_t x_pixel, y_pixel;               /* bytes between pixels */
    int32_t height, width, out_width, kernel_y, kernel_x, stride_y, stride_x, top, left; /* of pools */
    const int32_t *x_at, *y_at;             /* of each output: its first tap, its place */
    const int32_t *steps;                   /* from the first tap to the others */
    const int32_t *start;                   /* of sums of bytes */
    const void *weights;
    const uint8_t *table;
    const int32_t *table_at;                /* where the table of so many taps begins */
    double first_scale, second_scale, offset; /* of PAIR without a table: y = first * x + (second * x' + offset) */
    struct map map;
};

struct plan {
    const struct layer *layers;
    int32_t count, batch; /* samples whose layers run together */
    int64_t sample_bytes, slots;
    const int64_t *slot_bytes; /* of a sample in each array that is read or written */
};

int32_t tflq_lanes(void) { return LANES; }
int32_t tflq_group(void) { return GROUP; }
int32_t tflq_layer_bytes(void) { return (int32_t)sizeof(struct layer); }
int32_t tflq_plan_bytes(void) { return (int32_t)sizeof(struct plan); }

INLINE reals larger(reals a, reals b)
{
    for (int c = 0; c < LANES; c++) {
        a[c] = a[c] > b[c] ? a[c] : b[c];
    }
    return a;
}

INLINE reals smaller(reals a, reals b)
{
    for (int c = 0; c < LANES; c++) {
        a[c] = a[c] < b[c] ? a[c] : b[c];
    }
    return a;
}

INLINE reals all(float x) { return x - (reals){0}; }

/* a where the mask is set, b elsewhere */
INLINE reals chosen(ints mask, reals a, reals b) { return (reals)((mask & (ints)a) | (~mask & (ints)b)); }

/* Numbers within 2^22 to the nearest whole one, halves to the even one. */
INLINE reals rounded(reals x)
{
    const float magic = 12582912.0f;
    return (x + magic) - magic;
}

INLINE reals load_values(const char *at, int32_t is_real, float least)
{
    if (is_real) {
        return *(const reals_at *)at;
    }
    ints wide;
    for (int c = 0; c < LANES; c++) {
        wide[c] = ((const uint8_t *)at)[c];
    }
    return __builtin_convertvector(wide, reals) + least;
}

/* Store the lowest byte of each lane. */
INLINE void store_bytes(char *at, ints values)
{
    int32_t wide[LANES];
    memcpy(wide, &values, sizeof wide);
    for (int c = 0; c < LANES; c++) {
        ((uint8_t *)at)[c] = (uint8_t)wide[c];
    }
}

/* Store the first elements of a vector: float32 as they are, integers as bytes. */
INLINE void store_part(char *at, ints values, int32_t is_real, int32_t count)
{
    char found[4 * LANES];
    size_t left = (size_t)(count < LANES ? count : LANES);
    if (is_real) {
        memcpy(found, &values, sizeof values);
        left *= 4;
    } else {
        store_bytes(found, values);
    }
    const char *from = found;
    for (size_t part = 4 * LANES; part; part /= 2) {
        if (left & part) {
            memcpy(at, from, part);
            at += part;
            from += part;
        }
    }
}

INLINE void store_values(char *at, reals values, int32_t is_real, float least, int32_t count)
{
    const ints found = is_real ? (ints)values : __builtin_convertvector(values - least, ints);
    store_part(at, found, is_real, count);
}

/* What is added to whole numbers within 2^22 to read them off a float32's lowest bits; it rounds halves to even ones. */
#define MAGIC 12582912.0f
#define WIDE_MAGIC 6755399441055744.0 /* the same within 2^51 */

static void map_wide(const struct map *map, const int32_t *sums, int32_t channel, float *values)
{
    for (int32_t c = 0; c < LANES; c++) {
        double u = (sums[c] + map->wide_offset[channel + c]) * map->wide_scale[channel + c];
        if (map->wide_low) {
            double v = u > map->wide_low[channel + c] ? u : map->wide_low[channel + c];
            u += v < map->wide_high[channel + c] ? v : map->wide_high[channel + c];
        }
        u = u > map->minimum ? u : map->minimum;
        u = u < map->maximum ? u : map->maximum;
        values[c] = (float)((u + WIDE_MAGIC) - WIDE_MAGIC);
    }
}

/* Map the sums of one vector of channels, `apart` numbers from pixel to pixel, and store them at y[pixel] + at. */
INLINE void finish_as(const struct layer *layer, const int32_t *sums, int apart, int32_t channel, int pixels,
                      char *const *y, int corrected, int32_t rows, int wide, int is_real, int whole)
{
    const struct map *map = &layer->map;
    const int64_t at = (int64_t)channel * (is_real ? 4 : 1);
    const int32_t stride = map->stride, least = layer->y_least, left = map->channels - channel;
    const reals minimum = all(map->minimum), maximum = all(map->maximum);
    const reals magic = all(is_real ? MAGIC : MAGIC - (float)least); /* least is even: ties stay what they are */
    reals offset = {0}, scale = {0}, low = {0}, high = {0};
    if (!wide) {
        offset = *(const reals_at *)(map->offset + channel);
        scale = *(const reals_at *)(map->scale + channel);
    }
    if (corrected) {
        low = *(const reals_at *)(map->low + channel);
        high = *(const reals_at *)(map->high + channel);
    }
    for (int p = 0; p < pixels; p++, sums += apart) {
        const ints sum = *(const ints_at *)sums;
        reals u;
        if (wide) {
            float values[LANES];
            map_wide(map, sums, channel, values);
            u = *(const reals_at *)values;
        } else {
            u = (__builtin_convertvector(sum, reals) + offset) * scale;
            if (corrected) {
                u += smaller(larger(u, low), high);
            }
            u = smaller(larger(u, minimum), maximum);
        }
        ints found = (ints)(is_real ? (u + magic) - magic : u + magic);
        for (int32_t k = 0; k < rows; k++) {
            const ints other = *(const ints_at *)(map->at + k * stride + channel);
            const ints value = *(const ints_at *)(map->value + k * stride + channel);
            const ints mask = sum == other;
            found = (mask & (is_real ? (ints)__builtin_convertvector(value, reals) : value - least)) | (~mask & found);
        }
        if (whole && is_real) {
            *(ints_at *)(y[p] + at) = found;
        } else if (whole) {
            store_bytes(y[p] + at, found);
        } else {
            store_part(y[p] + at, found, is_real, left);
        }
    }
}

/* Map sums[pixel][vector], and store them at y[pixel]. */
static void finish(const struct layer *layer, const int32_t *sums, int32_t channel, int pixels, int vectors,
                   char *const *y)
{
    const struct map *map = &layer->map;
    const int is_real = layer->y_real, apart = vectors * LANES;
    for (int b = 0; b < vectors; b++, channel += LANES, sums += LANES) {
        const int32_t rows = map->rows[channel / LANES];
        const int corrected = map->low != 0, is_whole = map->channels - channel >= LANES;
        if (map->wide_scale) {
            finish_as(layer, sums, apart, channel, pixels, y, 0, rows, 1, is_real, 0);
        } else if (!is_whole) {
            finish_as(layer, sums, apart, channel, pixels, y, corrected, rows, 0, is_real, 0);
        } else if (rows) {
            finish_as(layer, sums, apart, channel, pixels, y, corrected, rows, 0, is_real, 1);
        } else if (corrected) {
            finish_as(layer, sums, apart, channel, pixels, y, 1, 0, 0, is_real, 1);
        } else if (is_real) {
            finish_as(layer, sums, apart, channel, pixels, y, 0, 0, 0, 1, 1);
        } else {
            finish_as(layer, sums, apart, channel, pixels, y, 0, 0, 0, 0, 1);
        }
    }
}

/* sums[P][B] of P pixels and B vectors of channels: they stay in registers, each vector of weights serves P pixels. */
#define DENSE_SUMS(P, B)                                                                               \
    static void dense_##P##_##B(const struct layer *layer, const char *const *from, const factors *weights, \
                                const int32_t *start, int32_t *result)                                 \
    {                                                                                                  \
        sums a[P][B];                                                                                  \
        const char *x[P];                                                                              \
        const int32_t *steps = layer->steps;                                                           \
        const int32_t groups = layer->groups;                                                          \
        UNROLL for (int p = 0; p < P; p++) {                                                           \
            x[p] = from[p];                                                                            \
            UNROLL for (int b = 0; b < B; b++) {                                                       \
                a[p][b] = __builtin_convertvector(((const ints_at *)start)[b], sums);                     \
            }                                                                                          \
        }                                                                                              \
        for (int32_t g = 0; g < groups; g++, weights += B) {                                           \
            const int64_t step = steps[g];                                                             \
            factors w[B];                                                                              \
            UNROLL for (int b = 0; b < B; b++) {                                                       \
                w[b] = weights[b];                                                                     \
            }                                                                                          \
            UNROLL for (int p = 0; p < P; p++) {                                                       \
                element value;                                                                         \
                memcpy(&value, x[p] + step, sizeof value);                                             \
                UNROLL for (int b = 0; b < B; b++) {                                                   \
                    a[p][b] = MULTIPLY_ADD(a[p][b], value, w[b]);                                      \
                }                                                                                      \
            }                                                                                          \
        }                                                                                              \
        UNROLL for (int p = 0; p < P; p++) {                                                           \
            UNROLL for (int b = 0; b < B; b++) {                                                       \
                ((ints_at *)result)[p * B + b] = __builtin_convertvector(a[p][b], ints);                  \
            }                                                                                          \
        }                                                                                              \
    }

typedef void dense_sums(const struct layer *, const char *const *, const factors *, const int32_t *, int32_t *);
DENSE_SUMS(1, 1)
DENSE_SUMS(1, 2)
DENSE_SUMS(1, 3)
DENSE_SUMS(1, 4)
#if LANES == 16
#define MOST 12
DENSE_SUMS(12, 1)
DENSE_SUMS(12, 2)
DENSE_SUMS(8, 3)
DENSE_SUMS(6, 4)
static dense_sums *const dense_one[] = {dense_1_1, dense_1_2, dense_1_3, dense_1_4};
static dense_sums *const dense_many[] = {dense_12_1, dense_12_2, dense_8_3, dense_6_4};
static const int32_t together[] = {12, 12, 8, 6};
#else
#define MOST 8
DENSE_SUMS(8, 1)
DENSE_SUMS(6, 2)
DENSE_SUMS(4, 3)
DENSE_SUMS(3, 4)
static dense_sums *const dense_one[] = {dense_1_1, dense_1_2, dense_1_3, dense_1_4};
static dense_sums *const dense_many[] = {dense_8_1, dense_6_2, dense_4_3, dense_3_4};
static const int32_t together[] = {8, 6, 4, 3};
#endif

static void dense(const struct layer *layer, char *arena, int32_t pixels)
{
    int32_t sums_of[MOST * 4 * LANES];
    const char *x[MOST];
    char *y[MOST];
    const factors *weights = layer->weights;
    for (int32_t channel = 0; channel < layer->map.channels; channel += layer->blocks * LANES) {
        int32_t vectors = (layer->map.channels - channel + LANES - 1) / LANES;
        vectors = vectors < layer->blocks ? vectors : layer->blocks;
        const int32_t many = together[vectors - 1];
        const int32_t size = pixels >= many ? many : 1;
        dense_sums *const sum = size > 1 ? dense_many[vectors - 1] : dense_one[vectors - 1];
        for (int32_t i = 0; i < pixels; i += size) {
            const int32_t first = i + size <= pixels ? i : pixels - size; /* the last block overlaps the one before */
            for (int32_t p = 0; p < size; p++) {
                x[p] = arena + layer->x_at[first + p];
                y[p] = arena + layer->y_at[first + p];
            }
            sum(layer, x, weights, layer->start + channel, sums_of);
            finish(layer, sums_of, channel, size, vectors, y);
        }
        weights += (int64_t)layer->groups * vectors;
    }
}

#define DEPTHWISE_PIXELS 16
#define DEPTHWISE_TAPS 9
#define ABREAST 4 /* pixels whose sums run at the same time */
#define MOST_NEIGHBOURS 5

/* Blocks of pixels outside, channels inside: what neighbouring windows share stays in the first-level cache, of which the
 * same channels of many pixels would use few sets. */
INLINE void depthwise_as(const struct layer *layer, char *arena, int32_t pixels, int32_t taps, int32_t is_real)
{
    int32_t sums_of[DEPTHWISE_PIXELS * LANES];
    const char *x[DEPTHWISE_PIXELS];
    char *y[DEPTHWISE_PIXELS];
    const int32_t *steps = layer->steps;
    const int32_t channels = layer->map.channels;
    const float least = (float)layer->x_least;
    for (int32_t i = 0; i < pixels; i += DEPTHWISE_PIXELS) {
        const int32_t size = pixels - i < DEPTHWISE_PIXELS ? pixels - i : DEPTHWISE_PIXELS;
        for (int32_t p = 0; p < DEPTHWISE_PIXELS; p++) {
            const int32_t n = p < size ? i + p : pixels - 1;
            x[p] = arena + layer->x_at[n];
            y[p] = arena + layer->y_at[n];
        }
        const reals_at *weights = layer->weights;
        for (int32_t channel = 0; channel < channels; channel += LANES, weights += taps) {
            const int64_t at = (int64_t)channel * (is_real ? 4 : 1);
            int64_t step[DEPTHWISE_TAPS] = {0};
            reals w[DEPTHWISE_TAPS] = {{0}};
            UNROLL for (int32_t t = 0; t < DEPTHWISE_TAPS && t < taps; t++) {
                step[t] = steps[t] + at;
                w[t] = weights[t];
            }
            for (int32_t p = 0; p < size; p += ABREAST) {
                reals sum[ABREAST];
                UNROLL for (int32_t k = 0; k < ABREAST; k++) {
                    sum[k] = (reals){0};
                }
                UNROLL for (int32_t t = 0; t < DEPTHWISE_TAPS && t < taps; t++) {
                    UNROLL for (int32_t k = 0; k < ABREAST; k++) {
                        sum[k] = plus_product(sum[k], load_values(x[p + k] + step[t], is_real, least), w[t]);
                    }
                }
                for (int32_t t = DEPTHWISE_TAPS; t < taps; t++) {
                    UNROLL for (int32_t k = 0; k < ABREAST; k++) {
                        const reals value = load_values(x[p + k] + steps[t] + at, is_real, least);
                        sum[k] = plus_product(sum[k], value, weights[t]);
                    }
                }
                UNROLL for (int32_t k = 0; k < ABREAST; k++) {
                    *(ints_at *)(sums_of + (p + k) * LANES) = __builtin_convertvector(sum[k], ints);
                }
            }
            finish(layer, sums_of, channel, size, 1, y);
        }
    }
}

/* The same for kernels of 3 x 3 on real numbers, R neighbours of a row at a time: each input is loaded once for the three
 * outputs that read it. */
INLINE void depthwise_rows(const struct layer *layer, char *arena, int32_t pixels, int32_t neighbours)
{
    int32_t sums_of[MOST_NEIGHBOURS * ABREAST * LANES];
    const char *x[ABREAST];
    char *y[MOST_NEIGHBOURS * ABREAST];
    const int32_t channels = layer->map.channels, pixel = layer->x_pixel;
    const int64_t second = layer->steps[3], third = layer->steps[6];
    for (int32_t i = 0; i < pixels; i += neighbours * ABREAST) {
        const int32_t left = (pixels - i) / neighbours, blocks = left < ABREAST ? left : ABREAST;
        for (int32_t p = 0; p < blocks; p++) {
            x[p] = arena + layer->x_at[i + p * neighbours];
        }
        for (int32_t p = 0; p < blocks * neighbours; p++) {
            y[p] = arena + layer->y_at[i + p];
        }
        const reals_at *w = layer->weights;
        for (int32_t channel = 0; channel < channels; channel += LANES, w += 9) {
            const reals w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5], w6 = w[6], w7 = w[7], w8 = w[8];
            for (int32_t p = 0; p < blocks; p++) {
                reals sum[MOST_NEIGHBOURS + 2] = {{0}};
                const char *from = x[p] + 4 * channel;
                UNROLL for (int32_t j = 0; j < neighbours + 2; j++, from += pixel) {
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
                UNROLL for (int32_t k = 0; k < neighbours; k++) {
                    *(ints_at *)(sums_of + (p * neighbours + k) * LANES) = __builtin_convertvector(sum[k], ints);
                }
            }
            finish(layer, sums_of, channel, blocks * neighbours, 1, y);
        }
    }
}

static void depthwise(const struct layer *layer, char *arena, int32_t pixels)
{
    switch (layer->neighbours) {
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
    if (layer->groups == DEPTHWISE_TAPS && layer->x_real) {
        depthwise_as(layer, arena, pixels, DEPTHWISE_TAPS, 1);
    } else if (layer->groups == DEPTHWISE_TAPS) {
        depthwise_as(layer, arena, pixels, DEPTHWISE_TAPS, 0);
    } else {
        depthwise_as(layer, arena, pixels, layer->groups, layer->x_real);
    }
}

/* Averages and maxima of windows: taps outside the image do not count. */
INLINE void pool_as(const struct layer *layer, char *arena, int32_t is_largest, int32_t x_real)
{
    const int32_t channels = layer->map.channels, x_pixel = layer->x_pixel;
    const float least = (float)layer->x_least, out_least = (float)layer->y_least;
    for (int32_t i = 0; i < layer->pixels; i++) {
        int32_t row = i / layer->out_width * layer->stride_y - layer->top;
        int32_t column = i % layer->out_width * layer->stride_x - layer->left;
        int32_t last_row = row + layer->kernel_y, last_column = column + layer->kernel_x;
        row = row > 0 ? row : 0;
        column = column > 0 ? column : 0;
        last_row = last_row < layer->height ? last_row : layer->height;
        last_column = last_column < layer->width ? last_column : layer->width;
        const uint8_t *table = layer->table + layer->table_at[(last_row - row) * (last_column - column)];
        for (int32_t channel = 0; channel < channels; channel += LANES) {
            reals found = {0};
            for (int32_t r = row; r < last_row; r++) {
                const char *x = arena + layer->x + r * layer->x_row + column * layer->x_pixel;
                x += channel * (x_real ? 4 : 1);
                for (int32_t c = column; c < last_column; c++, x += x_pixel) {
                    const reals value = load_values(x, x_real, least) - least;
                    if (is_largest) {
                        found = larger(found, value);
                    } else {
                        found += value;
                    }
                }
            }
            const ints index = __builtin_convertvector(found, ints);
            reals value = {0};
            const int32_t left = channels - channel < LANES ? channels - channel : LANES;
            for (int32_t c = 0; c < left; c++) {
                value[c] = (float)table[index[c]];
            }
            store_values(arena + layer->y_at[i] + channel * (layer->y_real ? 4 : 1), value + out_least, layer->y_real,
                         out_least, left);
        }
    }
}

static void pool(const struct layer *layer, char *arena)
{
    if (layer->kind == LARGEST) {
        pool_as(layer, arena, 1, layer->x_real);
    } else if (layer->x_real) {
        pool_as(layer, arena, 0, 1);
    } else {
        pool_as(layer, arena, 0, 0);
    }
}

INLINE uint32_t byte_at(const char *row, int32_t i, int32_t is_real, int32_t least)
{
    return is_real ? (uint32_t)((int32_t)((const float *)row)[i] - least) : ((const uint8_t *)row)[i];
}

INLINE void set_byte(char *row, int32_t i, int32_t is_real, int32_t least, uint32_t value)
{
    if (is_real) {
        ((float *)row)[i] = (float)((int32_t)value + least);
    } else {
        ((uint8_t *)row)[i] = (uint8_t)value;
    }
}

/* Values one by one: a table of one operand, or of two, or the sum of two with factors, in double. */
INLINE void elements_as(const struct layer *layer, char *arena, int32_t x_real, int32_t second_real, int32_t y_real)
{
    const double least = layer->map.minimum, most = layer->map.maximum, offset = layer->offset;
    const double first_scale = layer->first_scale, second_scale = layer->second_scale;
    const float out_least = (float)layer->y_least, x_least = (float)layer->x_least;
    const float second_least = (float)layer->second_least;
    const int32_t length = layer->length;
    for (int32_t r = 0; r < layer->rows; r++) {
        const char *x = arena + layer->x + (int64_t)r * layer->x_row;
        const char *second = arena + layer->second + (int64_t)r * layer->second_row;
        char *y = arena + layer->y + (int64_t)r * layer->y_row;
        for (int32_t i = 0; layer->table && i < layer->length; i++) {
            uint32_t index = byte_at(x, i, x_real, layer->x_least);
            if (layer->kind == PAIR) {
                index = 256 * index + byte_at(second, i, second_real, layer->second_least);
            }
            set_byte(y, i, y_real, layer->y_least, layer->table[index]);
        }
        for (int32_t i = 0; !layer->table && i < length; i += LANES) {
            const reals a = load_values(x + i * (x_real ? 4 : 1), x_real, x_least);
            const reals b = load_values(second + i * (second_real ? 4 : 1), second_real, second_least);
            float value[LANES], first[LANES], other[LANES];
            memcpy(first, &a, sizeof first);
            memcpy(other, &b, sizeof other);
            for (int c = 0; c < LANES; c++) {
                double u = first_scale * first[c] + (second_scale * other[c] + offset);
                u = u > least ? u : least;
                u = u < most ? u : most;
                value[c] = (float)((u + WIDE_MAGIC) - WIDE_MAGIC);
            }
            char *to = y + i * (y_real ? 4 : 1);
            const reals found = *(const reals_at *)value;
            if (length - i >= LANES && y_real) {
                *(reals_at *)to = found;
            } else if (length - i >= LANES) {
                store_bytes(to, __builtin_convertvector(found - out_least, ints));
            } else {
                store_values(to, found, y_real, out_least, length - i);
            }
        }
    }
}

static void elements(const struct layer *layer, char *arena)
{
    if (!layer->x_real && !layer->second_real && !layer->y_real) {
        elements_as(layer, arena, 0, 0, 0);
    } else {
        elements_as(layer, arena, layer->x_real, layer->second_real, layer->y_real);
    }
}

static void read_array(const struct layer *layer, char *restrict arena, const uint8_t *restrict from)
{
    const int32_t least = layer->y_least, rows = layer->rows, length = layer->length, row = layer->y_row;
    const uint8_t flip = least ? 128 : 0; /* int8: byte - 128 as unsigned */
    char *y = arena + layer->y;
    for (int32_t r = 0; r < rows; r++, from += length, y += row) {
        if (layer->y_real) {
            for (int32_t i = 0; i < length; i++) {
                ((float *)y)[i] = (float)((int32_t)(from[i] ^ flip) + least);
            }
        } else {
            for (int32_t i = 0; i < length; i++) {
                ((uint8_t *)y)[i] = from[i] ^ flip;
            }
        }
    }
}

static void write_array(const struct layer *layer, const char *restrict arena, uint8_t *restrict to)
{
    const int32_t rows = layer->rows, length = layer->length, row = layer->x_row;
    const uint8_t flip = layer->x_least ? 128 : 0;
    const char *x = arena + layer->x;
    for (int32_t r = 0; r < rows; r++, to += length, x += row) {
        if (layer->x_real) {
            for (int32_t i = 0; i < length; i++) {
                to[i] = (uint8_t)(int32_t)((const float *)x)[i];
            }
        } else {
            for (int32_t i = 0; i < length; i++) {
                to[i] = ((const uint8_t *)x)[i] ^ flip;
            }
        }
    }
}

/* Run the layers on samples: arrays[slot] are what is read and written, sample after sample. The arena holds
 * plan->batch samples of plan->sample_bytes, borders filled. */
void tflq_run(const struct plan *plan, char *arena, int64_t samples, char *const *arrays)
{
    for (int64_t first = 0; first < samples; first += plan->batch) {
        const int32_t count = (int32_t)(samples - first < plan->batch ? samples - first : plan->batch);
        for (const struct layer *layer = plan->layers; layer < plan->layers + plan->count; layer++) {
            if (layer->kind == DENSE) {
                dense(layer, arena, count * layer->pixels);
                continue;
            }
            if (layer->kind == DEPTHWISE) {
                depthwise(layer, arena, count * layer->pixels);
                continue;
            }
            for (int32_t s = 0; s < count; s++) {
                char *own = arena + s * plan->sample_bytes;
                char *array = arrays[layer->slot] + (first + s) * plan->slot_bytes[layer->slot];
                switch (layer->kind) {
                case READ:
                    read_array(layer, own, (const uint8_t *)array);
                    break;
                case WRITE:
                    write_array(layer, own, (uint8_t *)array);
                    break;
                case AVERAGE:
                case LARGEST:
                    pool(layer, own);
                    break;
                default:
                    elements(layer, own);
                }
            }
        }
    }
}
