"""Keys that a float IR may leave out: a layer without them is the layer that states their defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.converters.aipu.single_layers import LAYERS, OneLayer, arg_pool, one, pool
from tests.converters.aipu.test_needed_ranges import with_input_ranges
from tests.converters.aipu.test_recorded import WITHOUT_FLOAT
from tflq.converters.aipu import AIPU, graph_of
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.graph import Array
from tflq.interpreter import Engine, lower

NONE_FUSED = {"with_activation": "NONE"}
ELTWISE = [f"eltwise {m} 4" for m in ("ADD", "SUB", "MUL", "MAX", "MIN")]
DEFAULTS: list[tuple[str, dict[str, Any]]] = [
    *(
        (name, NONE_FUSED)
        for name in (*ELTWISE, "sub  4", "fully_connected", "batch_norm 3", "cubes 2", "eltwise relu")
    ),
    *((f"scatter_elements {m} 2", {"reduction": "NONE"}) for m in ("ADD", "MAX")),
    ("scatter_nd MUL", {"reduction": "NONE"}),
    ("gru_v3 reverse ('H',)", {"direction": "forward", "out_sequence": ("H",), "activations": ("SIGMOID", "TANH")}),
    ("basic_lstm forward ('H',)", {"direction": "forward", "forget_bias": 0.0}),
    ("convolution (3, 2) (2, 1) (1, 1) 1 3", {"group": 1, **NONE_FUSED}),
    ("cubes 1", {"group": 1}),
    ("activation SWISH", {"alpha": 1.0}),
    ("activation ELU", {"alpha": 1.0}),
    ("activation SELU", {"alpha": 1.0, "gamma": 1.0}),
    ("layer_norm", {"epsilon": 0.0}),
    ("instance_norm", {"epsilon": 0.0}),
    ("group_norm", {"epsilon": 0.0}),
    ("depth_to_space CRD", {"mode": "DCR"}),
    ("nearest ASYMMETRIC CEIL", {"nearest_mode": "ROUND_PREFER_FLOOR"}),
]
"""Cases of single_layers.py, and the values that keys have where nothing states them."""
CASES: dict[str, tuple[OneLayer, dict[str, Any]]] = {
    **{f"{name}, {', '.join(keys)}": (LAYERS[name], keys) for name, keys in DEFAULTS if name in LAYERS},
    "average, with its padding": (pool("AVG", (3, 3), (2, 2), (1, 1, 1, 1), full=True), {"count_include_pad": False}),
    "rows behind the image": (pool("AVG", (2, 2), (2, 2), (0, 0, 0, 0)), {"ceil_mode": False}),
    "columns first": (arg_pool("HWC", (0, 0, 0, 0), 1), {"storage_order": 0}),
    "crelu": (one("crelu", (3, 4), (6, 4), axis=1), {"axis": 0}),
    "padding": (one("pad", (1, 2, 3), (1, 4, 3), mode="REFLECT", constant_value=1.5, pads=((0, 0), (1, 1), (0, 0))),
                {"mode": "CONSTANT", "constant_value": 0.0}),
}  # fmt: skip


def _outcome(layer: OneLayer) -> list[Array]:
    """The outputs in floating point, where there is such a kernel, and quantized."""
    graph, samples, found = graph_of(layer.network()), layer.samples(), list[Array]()
    if layer.operator in WITHOUT_FLOAT:
        graph = with_input_ranges(layer)
    else:
        graph = calibrate(graph, samples, StatisticsOptions("mean", 1))
        results = Engine(graph).run(samples)
        found = [np.asarray(results[t]) for t in graph.outputs]
    quantized = lower(AIPU.quantize(graph, parse_settings(AIPU.settings)), AIPU.arithmetic)
    codes = [
        AIPU.encode(x, quantized.tensors[t]) if x.dtype.kind == "f" else x
        for x, t in zip(samples, quantized.inputs, strict=True)
    ]
    results = Engine(quantized).run(codes)
    return [*found, *(results[t] for t in quantized.outputs)]


@pytest.mark.parametrize("name", CASES)
def test_a_key_that_is_left_out_has_its_default(name: str) -> None:
    layer, defaults = CASES[name]
    stated = _outcome(replace(layer, keys={**layer.keys, **defaults}))
    left_out = _outcome(replace(layer, keys={k: v for k, v in layer.keys.items() if k not in defaults}))
    for a, b in zip(stated, left_out, strict=True):
        np.testing.assert_array_equal(a, b)


def test_every_case_is_a_layer() -> None:
    assert not {name for name, _ in DEFAULTS} - set(LAYERS)
