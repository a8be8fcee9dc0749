"""NE16's jobs, run by a model of its register page (tests/support/ne16.py), against the layer's own integers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from peers.ne16_rtl import drawn_filter, filters_of

from tests.support.gap9_nets import Net
from tests.support.ne16 import run
from tflq.converters.gap9.jobs.memory import LayerMemory, outputs_after_jobs
from tflq.converters.gap9.jobs.registers import config_word
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.graph import Graph
from tflq.parallel.executions import for_target

GUARD, AROUND = 0xA5, 4096
LONG = (59, 113, 301)
"""Seeds that give fully connected layers of more than 256 inputs."""


def batched(graph: Graph, images: int) -> Graph:
    """The network for so many images at once."""
    for t in (*graph.inputs, *graph.outputs):
        graph.tensors[t] = replace(graph.tensors[t], shape=(images, *graph.tensors[t].shape[1:]))
    return graph


@pytest.mark.parametrize("seed", [*range(48), *LONG])
def test_a_drawn_filter(seed: int) -> None:
    """All bytes of the output, after each job, and none around it; of one image, two or three."""
    check(batched(drawn_filter(np.random.default_rng([16, seed])), (1, 1, 1, 2, 3)[seed % 5]), 2 + seed % 7, seed)


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation"),
    [
        *(((1, 1), stride, (1, 1)) for stride in ((1, 2), (2, 1), (2, 3), (3, 3))),
        *(((3, 3), stride, (1, 1)) for stride in ((1, 2), (2, 1), (3, 3), (2, 2))),
        *(((3, 3), (1, 1), dilation) for dilation in ((1, 2), (2, 1), (3, 2))),
        *(((2, 3), (2, 1), (1, 1)), ((4, 1), (1, 2), (1, 1)), ((1, 4), (1, 1), (1, 2)), ((3, 2), (1, 1), (2, 1))),
    ],
)
def test_windows_with_unlike_sides(
    kernel: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int], padding: str
) -> None:
    net = Net((-1.0, 2.0), (1, 9, 8, 5))
    extent = [(k - 1) * d if padding == "valid" else 0 for k, d in zip(kernel, dilation, strict=True)]
    rows, columns = (-(-(n - e) // s) for n, e, s in zip((9, 8), extent, stride, strict=True))
    codes = net.random.integers(-127, 128, (12, *kernel, 5)).astype(np.int8)
    weights = net.builder.constant("w", codes, net._scales(12, 0.01))
    options = {"padding": padding, "fused_activation_function": "none"}
    options |= dict(zip(("stride_h", "stride_w"), stride, strict=True))
    options |= dict(zip(("dilation_h_factor", "dilation_w_factor"), dilation, strict=True))
    y = net.add("conv_2d", [net.x, weights, net._bias(12)], (1, rows, columns, 12), (-5.0, 4.0), **options)
    check(net.graph(y), 6, 5)


def check(graph: Graph, bits: int, seed: int) -> None:
    target = find_target("gap9-ne16")
    execution = for_target(graph, target, parse_settings(target.settings, (f"weight_bits={bits}",)))
    for memory, x, y in filters_of(execution, seed):
        if not isinstance(memory, LayerMemory):
            continue
        start, size = memory.at.output, memory.output_bytes
        content = np.full(start + size + AROUND, GUARD, np.uint8)
        content[: len(memory.constants)] = np.frombuffer(memory.constants, np.uint8)
        features = memory.features(x)
        content[memory.at.features : memory.at.features + features.size] = features.reshape(-1)
        before = content.copy()
        for job, wanted in zip(memory.jobs, outputs_after_jobs(memory, x, y), strict=True):
            run(content, job)
            left = content[start : start + size]
            assert np.array_equal(left[wanted != 0], wanted[wanted != 0])
        assert np.array_equal(left, wanted)
        assert 0 <= start - memory.at.features - features.size < 16
        assert np.array_equal(memory.output(content[start : start + size].tobytes()).reshape(-1), y.reshape(-1))
        beside = (
            memory.layer.window.top * memory.layer.size_in[1] + memory.layer.window.left
        ) * memory.layer.input_bytes
        assert 0 <= memory.at.features - len(memory.constants) - beside < 32, "the padding's pixels lie in front"
        used = memory.layer.planes_bytes, memory.layer.parameter_bytes
        assert 0 <= memory.at.multiplier - used[0] < 16
        assert used[1] == memory.multiplier.size + memory.shift.size + 4 * memory.bias.size
        images = memory.layer.images
        assert memory.layer.working_set_bytes == sum(used) + features.size // images + size // images
        content[start : start + size] = before[start : start + size]
        assert np.array_equal(content, before)


PLAIN = {"bits": 8, "wide": False, "mode": "3x3", "strided": False, "out_bits": 8, "signed": False, "right_shift": 0,
         "normalize": False, "shifts": False, "biased": False, "stream_in": False}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        *(({"bits": b}, b - 1) for b in range(2, 9)),
        *(({"mode": m}, 7 | bits) for m, bits in (("3x3dw", 1 << 5), ("1x1", 2 << 5), ("taps", 2 << 5))),
        *(({"mode": "linear"}, 7 | 2 << 5 | 1 << 7), ({"out_bits": 16}, 7 | 1 << 21), ({"out_bits": 32}, 7 | 2 << 21)),
        *(({"right_shift": n}, 7 | n << 16) for n in (1, 4, 15, 31)),
        *(({key: True}, 7 | 1 << bit) for key, bit in (("wide", 3), ("normalize", 4), ("strided", 8))),
        *(({key: True}, 7 | 1 << bit) for key, bit in (("stream_in", 14), ("signed", 23))),
        *(({key: True}, 7 | 1 << bit) for key, bit in (("shifts", 24), ("biased", 25))),
    ],
)  # fmt: skip
def test_fields_of_config0(changed: dict[str, int], word: int) -> None:
    """Their places in NE16's register page; bit 15, the layer's weight offset, is always set."""
    assert config_word(**{**PLAIN, **changed}) == word | 1 << 15  # type: ignore[arg-type]
