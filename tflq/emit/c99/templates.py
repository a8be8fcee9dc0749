"""The fixed text of a program's files."""

ARENA = """static union {{
    uint8_t at[{size}];
    int64_t aligned;
}} arena;

"""
"""Memory of the computed tensors; absent if the state holds all of them."""

HEADER = """/* {title}
 *
 * network_run computes one sample. {keeps}
 * Nothing is allocated; the arena is static, so that two calls must not run at the same time. */
#ifndef NETWORK_H
#define NETWORK_H

#include <stdint.h>

{sizes}

/* Called with each tensor as soon as it is computed; `values` is valid until the call returns. */
typedef void network_hook(void *context, int32_t tensor, const char *name, const void *values, int32_t bytes);

{struct}
/* inputs: NETWORK_INPUTS pointers, aligned to their types. outputs: NETWORK_OUTPUTS pointers. hook: NULL for none. */
void network_run({parameter}const void *const *inputs, void *const *outputs, network_hook *hook, void *context);

#endif
"""

KERNELS = """/* {title}
 *
 * The rules of this arithmetic and the sums of its layers; only what network.c calls. */
#ifndef KERNELS_H
#define KERNELS_H

#include <stdint.h>
{reals}
typedef char needs_arithmetic_shifts[((-3) >> 1 == -2) ? 1 : -1];

{called}

#endif
"""

REALS = """#include <float.h>

#if FLT_EVAL_METHOD != 0
#error "float and double must be computed in their own precision: no x87"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
"""
"""What stands in front of kernels that compute with real numbers."""

NETWORK = """/* {title} */
#include "network.h"

#include <string.h>

#include "kernels.h"

{functions}

{arena}{reset}void network_run({parameter}const void *const *inputs, void *const *outputs, network_hook *hook,
                 void *context)
{{
    (void)inputs;
{calls}
}}
"""

MAIN = """/* {title}
 *
 * Reads samples from standard input, the bytes of all inputs one after the other, and writes every tensor of each
 * sample to standard output, in the order of the layers; with an argument, only the outputs. */
#include <stdio.h>

#include "network.h"

static void write_tensor(void *context, int32_t tensor, const char *name, const void *values, int32_t bytes)
{{
    (void)context;
    (void)tensor;
    (void)name;
    fwrite(values, 1, (size_t)bytes, stdout);
}}

int main(int count, char **arguments)
{{
    static const size_t input_sizes[NETWORK_INPUTS] = NETWORK_INPUT_SIZES;
    static const size_t output_sizes[NETWORK_OUTPUTS] = NETWORK_OUTPUT_SIZES;
    static int64_t input_memory[NETWORK_INPUT_WORDS];
    static int64_t output_memory[NETWORK_OUTPUT_WORDS];
    const void *inputs[NETWORK_INPUTS];
    void *outputs[NETWORK_OUTPUTS];
{start}    (void)arguments;
    for (;;) {{
        int64_t *place = input_memory;
        for (int i = 0; i < NETWORK_INPUTS; i++) {{
            if (fread(place, 1, input_sizes[i], stdin) != input_sizes[i]) {{
                return i != 0 || ferror(stdin) || ferror(stdout);
            }}
            inputs[i] = place;
            place += (input_sizes[i] + 7) / 8;
        }}
        place = output_memory;
        for (int i = 0; i < NETWORK_OUTPUTS; i++) {{
            outputs[i] = place;
            place += (output_sizes[i] + 7) / 8;
        }}
        network_run({argument}inputs, outputs, count > 1 ? NULL : write_tensor, NULL);
        for (int i = 0; count > 1 && i < NETWORK_OUTPUTS; i++) {{
            fwrite(outputs[i], 1, output_sizes[i], stdout);
        }}
    }}
}}
"""

README = """# {model} as a C99 program, in the integers of {arithmetic}

Written by `tflq export --program c99`. It computes every tensor bit for bit as tflq does.

    cc -std=c99 -O2 -o network network.c main.c
    ./network < samples.bin > tensors.bin

| file | content |
|---|---|
| network.h | `network_run`, sizes, scales and zero points of inputs and outputs |
| network.c | constants, one function a layer, the arena ({arena} bytes) and the {layers} calls |
| kernels.h | the rules of the arithmetic and the sums of its layers; only what is called |
| main.c | a test program: samples from standard input, every tensor to standard output |
| index.json | the tensors in the order in which main.c writes them: name, type, shape, bytes |

Needs C99 with arithmetic right shifts and stdint.h; no libraries. gcc: `-std=c99` keeps products and sums apart
(-ffp-contract=off says so to other compilers).

{state}Left to the caller:
{borders}
"""

STATELESS = {
    "keeps": "It keeps nothing for the next one.",
    "parameter": "",
    "argument": "",
    "start": "",
    "state": "",
}
"""What those texts say of a network without state; STATEFUL of one with state."""

STATEFUL = {
    "keeps": "What it keeps for the next one is in *state, which the caller owns.",
    "parameter": "struct network_state *state,\n                 ",
    "argument": "&state, ",
    "start": "    static struct network_state state;\n    network_reset(&state);\n",
    "state": """\
State: the network keeps variables from one sample to the next, the members of `struct network_state`. The caller owns
it, one for each stream. `network_reset` sets what the network starts with, `network_run` reads and changes it. main.c
runs all samples as one stream.

""",
}
