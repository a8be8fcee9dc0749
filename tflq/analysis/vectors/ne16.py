"""NE16's jobs as test vectors: registers, and memory before the first job and after the last (docs/gap9.md, 20)."""

from __future__ import annotations

import numpy as np

from tflq.converters.gap9.jobs.memory import LayerMemory, layer_memory
from tflq.converters.gap9.jobs.registers import NAMES
from tflq.graph import Array, Graph

REGISTERS, BEFORE, AFTER = "ne16_registers", "ne16_before", "ne16_after"


def job_vectors(graph: Graph, index: int, features: Array, output: Array) -> dict[str, Array]:
    """Return the arrays of a filter on NE16 by name.

    ne16_registers: uint32[jobs, 24]; ne16_before, ne16_after: uint8[S, size], memory from address 0 to the end of the
    output, where nothing but the output changes. What is not written is 0. Outputs of 32 bits, which the cluster
    clips, have no `ne16_after`: output0 is what the clip leaves.

    Args:
        graph: lowered.
        index: of the filter.
        features: uint8[S, ...], its input.
        output: [S, ...], its output.

    Raises:
        UnsupportedError: no job computes it.
    """
    memory = layer_memory(graph, index)
    registers = np.array([[job.get(name, 0) for name in NAMES] for job in memory.jobs], np.uint32)
    before = np.stack([_image(memory, sample) for sample in features])
    found = {REGISTERS: registers, BEFORE: before}
    if memory.layer.out_bits == 8:
        after = before.copy()
        after[:, memory.at.output :] = output.reshape(len(output), -1).view(np.uint8)
        found[AFTER] = after
    return found


def _image(memory: LayerMemory, sample: Array) -> Array:
    image = np.zeros(memory.at.output + memory.output_bytes, np.uint8)
    image[: len(memory.constants)] = np.frombuffer(memory.constants, np.uint8)
    features = memory.features(sample).reshape(-1)
    image[memory.at.features : memory.at.features + features.size] = features
    return image
