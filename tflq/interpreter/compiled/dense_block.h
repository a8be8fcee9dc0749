/* P outputs of B vectors of channels, included once for each (P, B, TAPS): sums stay in registers from the first product to the
 * element, each vector of weights serves P outputs, each input B vectors.
 *
 * Four inputs have a register for their place. With less places the outputs come in fours whose inputs lie layer->apart bytes
 * from each other, so that more of them fit the registers. With TAPS of 3 the factors of three neighboring taps follow
 * each other, and one output's second tap reads what the first tap of the next one does: each input is loaded once. */
static void NAMED(P, B, TAPS)(const struct layer *layer, char *arena, const int32_t *x_at, const int32_t *y_at,
                        const factors *weights, int32_t channel)
{
    sums a[P][B];
    const char *x[PLACES];
    const struct map *map = &layer->map;
    const int32_t *steps = layer->steps;
    const int32_t groups = layer->groups;
    const int64_t apart = layer->apart, thrice = 3 * apart;
    (void)thrice;
    UNROLL for (int p = 0; p < PLACES; p++) {
        x[p] = arena + x_at[p * (P / PLACES)];
    }
    UNROLL for (int b = 0; b < B; b++) {
        const sums start = __builtin_convertvector(((const ints_at *)(layer->start + channel))[b], sums);
        UNROLL for (int p = 0; p < P; p++) {
            a[p][b] = start;
        }
    }
    for (int32_t g = 0; g < groups; g++, weights += TAPS * B) {
        const int64_t step = steps[g];
        factors w[TAPS][B];
        UNROLL for (int t = 0; t < TAPS; t++) {
            UNROLL for (int b = 0; b < B; b++) {
                w[t][b] = weights[t * B + b];
            }
        }
        UNROLL for (int q = 0; q < PLACES; q++) {
            const char *at = x[q] + step;
            __asm__("" : "+r"(at)); /* else the compiler keeps P places, more than there are registers */
            UNROLL for (int i = 0; i < P / PLACES + TAPS - 1; i++) {
                inputs value;
                memcpy(&value, at + i / 3 * thrice + i % 3 * apart, sizeof value);
                UNROLL for (int t = 0; t < TAPS; t++) {
                    if (i < t || i - t >= P / PLACES) {
                        continue;
                    }
                    const int p = q * (P / PLACES) + i - t;
                    UNROLL for (int b = 0; b < B; b++) {
                        a[p][b] = MULTIPLY_ADD(a[p][b], value, w[t][b]);
                    }
                }
            }
        }
    }
    const struct ends ends = ends_of(layer);
    UNROLL for (int b = 0; b < B; b++, channel += LANES) {
        char *y = arena + BYTES * channel;
        ints found[4];
        if (P < 4 || map->channels - channel < LANES || map->wide_scale) {
            sums kept[P];
            UNROLL for (int p = 0; p < P; p++) {
                kept[p] = a[p][b];
            }
            store_any(layer, kept, P, channel, arena, y_at);
            continue;
        }
        const int32_t rows = map->rows[channel / LANES];
        if (map->low) {
            const struct constants k = constants_of(map, channel, 1);
            UNROLL for (int p = 0; p < P; p++) {
                found[p % 4] = with_listed(map, a[p][b], channel, rows, mapped(a[p][b], &k, &ends, 1));
                if (p % 4 == 3) {
                    store_four(found, &ends, y, y_at + p - 3);
                }
            }
        } else {
            const struct constants k = constants_of(map, channel, 0);
            UNROLL for (int p = 0; p < P; p++) {
                found[p % 4] = with_listed(map, a[p][b], channel, rows, mapped(a[p][b], &k, &ends, 0));
                if (p % 4 == 3) {
                    store_four(found, &ends, y, y_at + p - 3);
                }
            }
        }
    }
}
#undef B
