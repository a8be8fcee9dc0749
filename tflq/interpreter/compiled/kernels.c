/* Layers of 8-bit integers over many samples, exactly: what Engine(backend="c") compiles once on a machine.
 *
 * Nothing here knows a network or a vendor's rounding: shapes, weights and tables come in structs. Sums are exact
 * integers; a sum becomes a quantized value by a float map that was proven equal to the integer rule
 (docs/internals/exactness.md)
 * or by a table that the rule filled.
 *
 * A tensor lies in the arena as channels of pixels of rows, with a border that holds the padding value for ever: as
 * bytes, quantized value - least value of the type, or on processors without a dot product of bytes as real numbers, the
 * quantized values themselves. */
#include "depthwise.h"
#include "dense.h"
#include "elements.h"
#include "softmax.h"

int32_t tflq_lanes(void) { return LANES; }
int32_t tflq_group(void) { return GROUP; }
int32_t tflq_blocks(int32_t in_fours) { return in_fours ? BLOCKS_IN_FOURS : BLOCKS; }
int32_t tflq_taps(void) { return MOST_TAPS; }
int32_t tflq_layer_bytes(void) { return (int32_t)sizeof(struct layer); }
int32_t tflq_plan_bytes(void) { return (int32_t)sizeof(struct plan); }

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
                case READ_REALS:
                    read_reals(layer, own, (const int32_t *)array);
                    break;
                case WRITE:
                    write_array(layer, own, (uint8_t *)array);
                    break;
                case WRITE_REALS:
                    write_reals(layer, own, array);
                    break;
                case TO_REALS:
                    to_reals(layer, own);
                    break;
                case REAL_SUM:
                    real_sums(layer, own);
                    break;
                case AVERAGE:
                case LARGEST:
                    pool(layer, own);
                    break;
                case SOFTMAX:
                    softmax(layer, own);
                    break;
                default:
                    elements(layer, own);
                }
            }
        }
    }
}
