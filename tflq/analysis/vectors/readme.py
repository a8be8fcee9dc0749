"""The README of a folder of test vectors: what the files are, and how a test bench of each kind takes them."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.analysis.vectors.collect import LayerVectors
from tflq.analysis.vectors.ne16 import REGISTERS

NAME = "README.md"

_ROLES = """Arrays of each layer, by role:

- input, output: [samples, ...], what the layer reads and must write; the last axis is the fastest.
- constant: weights, bias and tables as the graph holds them.
- integers: what the arithmetic decided: multipliers, shifts, folded biases, limits.
- memory: of an accelerator's jobs, below.

index.json has every array's file, type, shape, scale and zero point, and the numbers that are no arrays.
"""

_USES = {
    "hex": """## SystemVerilog

One word a line, two's complement; the first line is a comment with type and shape.

    logic [{bits}:0] wanted [0:{last}];
    initial $readmemh("{file}", wanted);
    // behind the layer: for (int i = 0; i <= {last}; i++) assert (dut.memory[base + i] == wanted[i]);

## cocotb

    words = [int(w, 16) for w in open("{file}") if not w.startswith("//")]
    assert [int(dut.memory[base + i].value) for i in range(len(words))] == words
""",
    "c": """## C

A pair of files a layer; compile the .c beside the test.

    #include "{layer}.h"
    for (int i = 0; i < {upper}_COUNT; i++) {{
        if (result[i] != {array}[i]) {{ printf("element %d\\n", i); return 1; }}
    }}
""",
    "npz": """## Python, cocotb

    import numpy as np
    arrays = np.load("{file}")
    assert (np.asarray(result).reshape(arrays["{name}"][0].shape) == arrays["{name}"][0]).all()
""",
}

_JOBS = """## Jobs of NE16

Layers with ne16_registers: {layers}. A sample runs so, memory counted from address 0:

1. Load ne16_before[sample].
2. For each row of ne16_registers: write its 24 words to the job's registers, in order, trigger, and wait for the end.
3. After job j, where there are several, memory from the output's address (register 2 of the first row) on equals
   ne16_outputs[sample, j].
4. At the end memory equals ne16_after[sample]. What is not written is 0.
"""


def readme_of(layers: Sequence[LayerVectors], kind: str) -> str:
    """Return the text, its examples with the names of the first layer.

    Args:
        layers: that were written, at least one.
        kind: "c", "hex" or "npz".
    """
    layer = layers[0]
    vector = next((v for v in layer.vectors if v.role == "output"), layer.vectors[0])
    array = f"{layer.identifier}_{vector.identifier}"
    use = _USES[kind].format(
        layer=layer.identifier,
        array=array,
        upper=array.upper(),
        name=vector.identifier,
        file=f"{array}.hex" if kind == "hex" else f"{layer.identifier}.npz",
        bits=8 * vector.values.dtype.itemsize - 1,
        last=vector.values.size - 1,
    )
    on_ne16 = [x.identifier for x in layers if any(v.name == REGISTERS for v in x.vectors)]
    jobs = [_JOBS.format(layers=", ".join(on_ne16))] if on_ne16 else []
    return "\n".join(["# Test vectors\n", _ROLES, use, *jobs])
