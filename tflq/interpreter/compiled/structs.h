/* What compiler.py declares once more: maps, layers, plans. */
#ifndef TFLQ_STRUCTS_H
#define TFLQ_STRUCTS_H

#include <stdint.h>

/* How an accumulator becomes a quantized value: StepMap of numerics/step_map.py, for channels in whole vectors. */
struct map {
    const float *offset, *scale, *low, *high; /* low and high: NULL where there is no correction */
    const double *wide_offset, *wide_scale, *wide_low, *wide_high; /* instead of them, where not NULL */
    const double *bias;        /* where not NULL: (sum + wide_offset) * wide_scale + bias is a real number, and stays one */
    const int32_t *at, *value; /* accumulators that the map gets wrong, and the elements of their lanes: rows of all channels */
    const int32_t *rows;       /* how many of them each vector of channels needs */
    int32_t channels, stride;
    float minimum, maximum;
};

enum kind {
    READ, WRITE, DENSE, DEPTHWISE, AVERAGE, LARGEST, PAIR, TABLE, SOFTMAX, ROUNDED_PAIR, READ_REALS, WRITE_REALS, TO_REALS,
    REAL_SUM
};

struct layer {
    int32_t kind, slot;                     /* slot: of the input or output array that READ and WRITE move */
    int64_t x, second, y;                   /* first pixel inside the border, in bytes of a sample's arena */
    int32_t x_least, second_least, y_least; /* least value of the types */
    int32_t x_row, second_row, y_row;       /* bytes between rows */
    int32_t rows, length;                   /* of what moves or is mapped one by one: rows of so many elements */
    int32_t pixels, blocks;                 /* outputs; vectors of channels at a time */
    int32_t groups;                         /* of GROUP products each, for one output and tap; of taps of depthwise layers */
    int32_t apart;                          /* bytes between the inputs of each four outputs of a dense layer, or 0 */
    int32_t taps;                           /* neighboring taps whose factors follow each other: 1 or 3 */
    int32_t pieces, piece_apart;            /* of a depthwise layer's vector of inputs; bytes between them */
    int32_t outputs;                        /* of a depthwise layer of bytes for each place of its inputs: 1, or 2 below each other */
    int32_t neighbors;                     /* outputs of a row that a depthwise layer computes together; 0 for others */
    int32_t x_pixel, y_pixel;               /* bytes between pixels */
    int32_t height, width, out_width, kernel_y, kernel_x, stride_y, stride_x, top, left; /* of pools */
    const int32_t *x_at, *y_at;             /* of each output: its first tap, its place */
    const int32_t *steps;                   /* from the first tap to the others */
    const int32_t *start;                   /* of sums of bytes */
    const void *weights;
    const uint8_t *table;
    const int32_t *table_at;                /* where the table of so many taps begins */
    const int64_t *exponentials, *addends;  /* of SOFTMAX: of the differences 0, -1, ..., -255 */
    double first_scale, second_scale, offset; /* of PAIR without a table: y = first * x + (second * x' + offset) */
    double first_offset, second_offset, scale; /* of ROUNDED_PAIR: y = scale * (t + t') + offset, t = rint(first * x + first_offset) */
    int32_t is_single;                      /* whether float32 gives it */
    int32_t of_nan;                         /* of READ_REALS: the result of NaN, less the least value */
    int32_t zero, is_away;                  /* of a line of READ_REALS; zero: of REAL_SUM, too, the element of level 0 */
    const int32_t *thresholds;              /* places in order of the least numbers whose results are above 0, 1, ...; or NULL */
    const float *numbers;                   /* of TO_REALS: of each quantized value, or NULL for a line */
    struct map map;
};

struct plan {
    const struct layer *layers;
    int32_t count, batch; /* samples whose layers run together */
    int64_t sample_bytes, slots;
    const int64_t *slot_bytes; /* of a sample in each array that is read or written */
};

#endif
