/* Pools, tables, sums of two tensors, softmax, and arrays read and written. */
#ifndef TFLQ_ELEMENTS_H
#define TFLQ_ELEMENTS_H

#include "map.h"

/* Averages and maxima of windows: taps outside the image do not count. */
INLINE void pool_as(const struct layer *layer, char *arena, int32_t is_largest)
{
    const int32_t channels = layer->map.channels, x_pixel = layer->x_pixel;
    const float least = LEAST((float)layer->x_least);
    for (int32_t i = 0; i < layer->pixels; i++) {
        int32_t row = i / layer->out_width * layer->stride_y - layer->top;
        int32_t column = i % layer->out_width * layer->stride_x - layer->left;
        int32_t last_row = row + layer->kernel_y, last_column = column + layer->kernel_x;
        row = row > 0 ? row : 0;
        column = column > 0 ? column : 0;
        last_row = last_row < layer->height ? last_row : layer->height;
        last_column = last_column < layer->width ? last_column : layer->width;
        const uint8_t *table = layer->table + layer->table_at[(last_row - row) * (last_column - column)];
        element *y = (element *)(arena + layer->y_at[i]);
        for (int32_t channel = 0; channel < channels; channel += LANES) {
            reals found = {0};
            for (int32_t r = row; r < last_row; r++) {
                const char *x = arena + layer->x + r * layer->x_row + column * x_pixel + BYTES * channel;
                for (int32_t c = column; c < last_column; c++, x += x_pixel) {
                    const reals value = load_elements(x) - least;
                    found = is_largest ? larger(found, value) : found + value;
                }
            }
            const ints index = __builtin_convertvector(found, ints);
            for (int32_t c = 0; c < LANES && channel + c < channels; c++) {
                y[channel + c] = (element)(table[index[c]] + LEAST(layer->y_least));
            }
        }
    }
}

static void pool(const struct layer *layer, char *arena)
{
    if (layer->kind == LARGEST) {
        pool_as(layer, arena, 1);
    } else {
        pool_as(layer, arena, 0);
    }
}

/* How a sum of two tensors is computed: with factors in double or in float32, or in float32 of operands that are rounded. */
enum sum { IN_DOUBLE, IN_SINGLE, OF_ROUNDED };

INLINE ints pair_sum(const struct layer *layer, const char *x, const char *second, enum sum kind, int clamped)
{
    const reals a = load_elements(x), b = load_elements(second);
    if (kind != IN_DOUBLE) {
        reals u;
        if (kind == IN_SINGLE) { /* layers.py takes factors that keep it within 2^30 */
            u = a * (float)layer->first_scale + (b * (float)layer->second_scale + (float)layer->offset);
        } else {
            u = whole(a * (float)layer->first_scale + (float)layer->first_offset);
            u = u + whole(b * (float)layer->second_scale + (float)layer->second_offset);
            u = u * (float)layer->scale + (float)layer->offset;
        }
        return rounded(clamped ? smaller(larger(u, all(layer->map.minimum)), all(layer->map.maximum)) : u);
    }
    reals value = {0};
    for (int c = 0; c < LANES; c++) {
        double u = layer->first_scale * a[c] + (layer->second_scale * b[c] + layer->offset);
        u = u > layer->map.minimum ? u : layer->map.minimum;
        u = u < layer->map.maximum ? u : layer->map.maximum;
        value[c] = (float)((u + WIDE_MAGIC) - WIDE_MAGIC);
    }
#ifdef DOT
    return __builtin_convertvector(value, ints);
#else
    return (ints)value;
#endif
}

INLINE void pair_sums(const struct layer *shared, const char *x, const char *second, char *y, enum sum kind)
{
    const struct layer own = *shared, *layer = &own; /* what is stored cannot change it: its numbers stay in registers */
    const int32_t length = layer->length;
    int32_t i = 0;
#ifdef DOT
    const int32_t bottom = (int32_t)layer->map.minimum, top = (int32_t)layer->map.maximum;
    for (; i + 4 * LANES <= length; i += 4 * LANES, x += 4 * LANES, second += 4 * LANES, y += 4 * LANES) {
        ints found[4];
        UNROLL for (int k = 0; k < 4; k++) {
            found[k] = pair_sum(layer, x + k * LANES, second + k * LANES, kind, 0);
        }
        *(ints_at *)y = in_order(packed_bytes(found, 0, bottom, top));
    }
#endif
    for (; i < length; i += LANES, x += LANES * BYTES, second += LANES * BYTES, y += LANES * BYTES) {
        const ints found = pair_sum(layer, x, second, kind, 1);
        if (length - i >= LANES) {
            store_elements(y, found);
        } else {
            store_some(y, found, length - i);
        }
    }
}

#ifdef LOOK_UP
/* A table of one operand: both halves of it at once, of which the highest bit chooses. */
INLINE void look_up(const uint8_t *table, const uint8_t *x, uint8_t *y, int32_t length)
{
    const __m512i *part = (const __m512i *)table;
    const __m512i a = part[0], b = part[1], c = part[2], d = part[3];
    for (int32_t i = 0; i < length; i += 64) {
        const __mmask64 there = length - i < 64 ? ((__mmask64)1 << (length - i)) - 1 : ~(__mmask64)0;
        const __m512i at = _mm512_maskz_loadu_epi8(there, x + i);
        const __m512i found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), LOOK_UP(a, b, at), LOOK_UP(c, d, at));
        _mm512_mask_storeu_epi8(y + i, there, found);
    }
}
#endif

/* Values one by one: a table of one operand, or of two, or the sum of two with factors. */
static void elements(const struct layer *layer, char *arena)
{
    const int32_t x_least = LEAST(layer->x_least), second_least = LEAST(layer->second_least);
    const int32_t y_least = LEAST(layer->y_least);
    for (int32_t r = 0; r < layer->rows; r++) {
        const char *from = arena + layer->x + (int64_t)r * layer->x_row;
        const char *other = arena + layer->second + (int64_t)r * layer->second_row;
        char *to = arena + layer->y + (int64_t)r * layer->y_row;
        const element *x = (const element *)from, *second = (const element *)other;
        element *y = (element *)to;
        if (layer->kind == ROUNDED_PAIR) {
            pair_sums(layer, from, other, to, OF_ROUNDED);
        } else if (!layer->table && layer->is_single) {
            pair_sums(layer, from, other, to, IN_SINGLE);
        } else if (!layer->table) {
            pair_sums(layer, from, other, to, IN_DOUBLE);
        } else if (layer->kind == PAIR) {
            for (int32_t i = 0; i < layer->length; i++) {
                y[i] = (element)(layer->table[256 * ((int32_t)x[i] - x_least) + (int32_t)second[i] - second_least] + y_least);
            }
        } else {
#ifdef LOOK_UP
            look_up(layer->table, x, y, layer->length);
#else
            for (int32_t i = 0; i < layer->length; i++) {
                y[i] = (element)(layer->table[(int32_t)x[i] - x_least] + y_least);
            }
#endif
        }
    }
}

static void read_array(const struct layer *layer, char *restrict arena, const uint8_t *restrict from)
{
    const int32_t least = layer->y_least, rows = layer->rows, length = layer->length, row = layer->y_row;
    const uint8_t flip = least ? 128 : 0; /* int8: byte - 128 as unsigned */
    char *y = arena + layer->y;
    for (int32_t r = 0; r < rows; r++, from += length, y += row) {
        for (int32_t i = 0; i < length; i++) {
            ((element *)y)[i] = (element)((int32_t)(from[i] ^ flip) + LEAST(least));
        }
    }
}

/* Added to a real number, it is a whole number or more from the next half on, and below one before it. */
#define BELOW_HALF 0.49999997f

/* Elements of whole numbers above the least value, but for NaN. */
INLINE ints from_whole(ints found, ints is_nan, const struct layer *layer)
{
    found ^= is_nan & (found ^ layer->of_nan);
#ifndef DOT
    found = (ints)__builtin_convertvector(found + layer->y_least, reals);
#endif
    return found;
}

/* Quantized values of real numbers: compiled/reals.py. The compiler may take all numbers for finite ones, so NaN and the
 * order are told by bits. */
INLINE ints from_reals(const struct layer *layer, ints bits)
{
    const ints size = bits & INT32_MAX, is_nan = (ints)(size > 0x7F800000);
    if (!layer->thresholds) {
        reals u = (reals)(bits & ~is_nan) * (float)layer->first_scale + (float)layer->offset;
        u = smaller(larger(u, all(-(float)layer->zero)), all(255 - (float)layer->zero));
#ifdef DOT
        if (!layer->is_away) {
            return from_whole(rounded(u) + layer->zero, is_nan, layer);
        }
#endif
        u = layer->is_away ? u + (reals)(((ints)u & INT32_MIN) | (ints)all(BELOW_HALF)) : whole(u);
        return from_whole(__builtin_convertvector(u, ints) + layer->zero, is_nan, layer);
    }
    const ints is_below = (ints)(bits < 0), place = (size ^ is_below) - is_below;
    const reals line = (reals)(bits & ~is_nan) * (float)layer->first_scale + (float)layer->offset;
    ints found = __builtin_convertvector(smaller(larger(line, all(0)), all(255)), ints);
    ints least;
    for (int c = 0; c < LANES; c++) {
        least[c] = layer->thresholds[found[c]];
    }
    return from_whole(found - (ints)(place >= least), is_nan, layer);
}

static void read_reals(const struct layer *shared, char *restrict arena, const int32_t *restrict from)
{
    const struct layer own = *shared, *layer = &own;
    const int32_t is_one = layer->y_row == layer->length * (int32_t)BYTES; /* row of all */
    const int32_t rows = is_one ? 1 : layer->rows, length = is_one ? layer->rows * layer->length : layer->length;
    char *row = arena + layer->y;
    for (int32_t r = 0; r < rows; r++, row += layer->y_row, from += length) {
        int32_t i = 0;
#ifdef DOT
        for (; i + 4 * LANES <= length; i += 4 * LANES) {
            ints found[4];
            UNROLL for (int k = 0; k < 4; k++) {
                found[k] = from_reals(layer, *(const ints_at *)(from + i + k * LANES));
            }
            *(ints_at *)(row + i) = in_order(packed_bytes(found, 0, 0, 255));
        }
#endif
        for (; i + LANES <= length; i += LANES) {
            store_elements(row + i * BYTES, from_reals(layer, *(const ints_at *)(from + i)));
        }
        if (i < length) {
            ints rest = {0};
            memcpy(&rest, from + i, (size_t)(length - i) * sizeof(int32_t));
            store_some(row + i * BYTES, from_reals(layer, rest), length - i);
        }
    }
}

static void write_reals(const struct layer *layer, const char *restrict arena, char *restrict to)
{
    const int64_t bytes = (int64_t)sizeof(float) * layer->length;
    for (int32_t r = 0; r < layer->rows; r++, to += bytes) {
        memcpy(to, arena + layer->x + (int64_t)r * layer->x_row, (size_t)bytes);
    }
}

/* Real numbers of quantized values: f32((x - zero) * scale), or from a table. */
static void to_reals(const struct layer *layer, char *arena)
{
    const int32_t length = layer->length, least = LEAST(layer->x_least);
    const float zero = (float)layer->zero, scale = (float)layer->scale;
    for (int32_t r = 0; r < layer->rows; r++) {
        const element *restrict x = (const element *)(arena + layer->x + (int64_t)r * layer->x_row);
        float *restrict y = (float *)(arena + layer->y + (int64_t)r * layer->y_row);
        for (int32_t i = 0; i < length; i++) {
            y[i] = layer->numbers ? layer->numbers[(int32_t)x[i] - least] : ((float)x[i] - zero) * scale;
        }
    }
}

/* Sums of real numbers and quantized values as the rule has them, in double. */
static __attribute__((noinline)) void real_sum_exactly(const struct layer *layer, reals x, reals second, ints *found)
{
    for (int c = 0; c < LANES; c++) {
        double u = (double)x[c] + ((double)second[c] - layer->second_offset) * layer->second_scale;
        u = u / layer->scale + layer->offset;
        u = u > layer->map.minimum ? u : layer->map.minimum;
        u = u < layer->map.maximum ? u : layer->map.maximum;
        (*found)[c] = (int32_t)((u + WIDE_MAGIC) - WIDE_MAGIC);
    }
}

/* The same in float32, whose error is below `margin`: what lies that near to a half is computed exactly. Of sums u up to 257 in
 * magnitude, quantized terms up to m, eight roundings lose at most (3 |u| + 8 m) 2^-24. */
static void real_sums(const struct layer *layer, char *arena)
{
    const int32_t length = layer->length;
    const float factor = (float)(1 / layer->scale), slope = (float)(layer->second_scale / layer->scale);
    const float start = (float)(layer->offset - layer->second_offset * layer->second_scale / layer->scale);
    const float end = start + 255 * slope, size = (start < 0 ? -start : start) + (end < 0 ? -end : end);
    const float clear = 0.5f - (400 + 8 * size) * 0x1p-23f; /* sums within it of a whole number become that one */
    const reals least = all(layer->map.minimum), most = all(layer->map.maximum);
    for (int32_t r = 0; r < layer->rows; r++) {
        const char *x = arena + layer->x + (int64_t)r * layer->x_row;
        const char *second = arena + layer->second + (int64_t)r * layer->second_row;
        char *y = arena + layer->y + (int64_t)r * layer->y_row;
        for (int32_t i = 0; i < length; i += LANES, x += 4 * LANES, second += LANES * BYTES, y += LANES * BYTES) {
            const reals a = *(const reals_at *)x, b = load_elements(second);
            const reals u = smaller(larger(a * factor + (b * slope + start), least), most), near = whole(u);
            ints found = __builtin_convertvector(near, ints);
            const ints unsure = (ints)((reals)((ints)(u - near) & INT32_MAX) > clear);
            if (has_any(unsure)) {
                real_sum_exactly(layer, a, b, &found);
            }
            found += layer->zero;
#ifndef DOT
            found = (ints)__builtin_convertvector(found, reals);
#endif
            if (length - i >= LANES) {
                store_elements(y, found);
            } else {
                store_some(y, found, length - i);
            }
        }
    }
}

static void write_array(const struct layer *layer, const char *restrict arena, uint8_t *restrict to)
{
    const int32_t least = layer->x_least, rows = layer->rows, length = layer->length, row = layer->x_row;
    const uint8_t flip = least ? 128 : 0;
    const char *x = arena + layer->x;
    for (int32_t r = 0; r < rows; r++, to += length, x += row) {
        for (int32_t i = 0; i < length; i++) {
            to[i] = (uint8_t)((uint8_t)((int32_t)((const element *)x)[i] - LEAST(least)) ^ flip);
        }
    }
}

#endif
