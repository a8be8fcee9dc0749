"""NE16's jobs as test vectors: registers, and memory before the first job and after the last (docs/gap9.md, 20)."""

from __future__ import annotations

import numpy as np

from tflq.converters.gap9.jobs.memory import LayerMemory, layer_memory, outputs_after_jobs
from tflq.converters.gap9.jobs.registers import NAMES
from tflq.graph import Array, Graph

REGISTERS, BEFORE, OUTPUTS, AFTER = "ne16_registers", "ne16_before", "ne16_outputs", "ne16_after"


def job_vectors(graph: Graph, index: int, features: Array, output: Array) -> dict[str, Array]:
    """Return the arrays of a filter on NE16 by name.

    ne16_registers: uint32[jobs, 24]; ne16_before, ne16_after: uint8[S, size], memory from address 0 to the end of the
    output, before the first job and after the last. ne16_outputs, of layers with several jobs: uint8[S, jobs, bytes],
    memory from the output's address on after each job; nothing else changes. What is not written is 0. Outputs of 32
    bits are what the cluster clips: output0 is what the clip leaves.

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
    pairs = zip(features, output, strict=True)
    outputs = np.stack([np.stack(list(outputs_after_jobs(memory, x, y))) for x, y in pairs])
    after = before.copy()
    after[:, memory.at.output :] = outputs[:, -1]
    found = {REGISTERS: registers, BEFORE: before, AFTER: after}
    return found if len(registers) == 1 else {**found, OUTPUTS: outputs}


def _image(memory: LayerMemory, sample: Array) -> Array:
    image = np.zeros(memory.at.output + memory.output_bytes, np.uint8)
    image[: len(memory.constants)] = np.frombuffer(memory.constants, np.uint8)
    features = memory.features(sample).reshape(-1)
    image[memory.at.features : memory.at.features + features.size] = features
    return image
