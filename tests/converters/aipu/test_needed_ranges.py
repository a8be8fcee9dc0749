"""Which layers need the range of what they write, and types of Constants, as docs/targets/aipu.md has them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.converters.aipu.drawn_layers import DRAWN
from tests.converters.aipu.single_layers import LAYERS, OneLayer
from tests.converters.aipu.test_recorded import RECORDED
from tflq.converters.aipu import AIPU, graph_of
from tflq.converters.settings import parse_settings
from tflq.errors import UnsupportedError
from tflq.graph import DType, Graph, Range

WITHOUT = {
    *("arg_min_max", "batch_to_depth", "batch_to_space", "bounding_box", "channel_shuffle", "count", "crop"),
    *("ctc_greedy_decoder", "data_stride", "depth_to_space", "detection_output", "filter", "gather", "gather_nd"),
    *(
        "global_pool",
        "grid_sample",
        "in_top_k",
        "log_softmax",
        "logical",
        "max_pooling_with_arg_max",
        "max_roi_pool",
        "negative",
        "nms",
        "one_hot",
    ),
    *("pad", "pooling", "proposal", "repeat", "reshape", "resize", "reverse_sequence", "roi_align", "sign", "slice"),
    *("space_to_batch", "space_to_depth", "split", "tile", "top_k", "transpose", "upsample_by_index"),
}
"""Their outputs have the input's type or a fixed one."""
TABLES = {
    "bnll",
    "ceil",
    "cosine",
    "erf",
    "exp",
    "floor",
    "log",
    "reciprocal",
    "round",
    "rsqrt",
    "sine",
    "sqrt",
    "square",
}
"""Functions of one number: their range follows from that of the input."""
STEPS = ("RELU", "RELU6", "CLIP", "LEAKYRELU", "PRELU")
PASSING_REDUCTIONS = ("ALL", "ANY", "MAX", "MIN")


def _needs(layer: OneLayer) -> bool:
    method = layer.keys.get("method")
    if layer.operator == "activation":
        return method in STEPS
    if layer.operator == "reduce":
        return method not in PASSING_REDUCTIONS
    return layer.operator not in WITHOUT | TABLES


def _first_of_each() -> dict[str, OneLayer]:
    """One layer of each operator and method."""
    found: dict[str, OneLayer] = {}
    for name, layer in (*LAYERS.items(), *DRAWN.items()):
        if name in RECORDED["layers"] or name in RECORDED["drawn"]:
            found.setdefault(f"{layer.operator} {layer.keys.get('method', '')}".strip(), layer)
    return found


CASES = _first_of_each()


def with_input_ranges(layer: OneLayer) -> Graph:
    graph = graph_of(layer.network())
    for t, x in zip(graph.inputs, layer.samples(), strict=True):
        if x.dtype.kind == "f":
            limits = Range(*(np.array([v], np.float32) for v in (x.min(), x.max())))
            graph.tensors[t] = replace(graph.tensors[t], range=limits)
    return graph


@pytest.mark.parametrize("name", CASES)
def test_outputs_whose_range_a_layer_needs(name: str) -> None:
    graph = with_input_ranges(CASES[name])
    inner = [graph.tensors[t].name for node in graph.nodes for t in node.intermediates or ()]
    inner = [] if name == "lrn WITHIN_CHANNEL" else inner
    outputs = [graph.tensors[t].name for node in graph.nodes for t in node.outputs] if _needs(CASES[name]) else []
    missing = [*outputs, *inner]
    if not missing:
        AIPU.quantize(graph, parse_settings(AIPU.settings))
        return
    with pytest.raises(UnsupportedError) as refused:
        AIPU.quantize(graph, parse_settings(AIPU.settings))
    if name == "pyramid_roi_align":  # of pixels alone, which its own rule asks for
        assert str(refused.value).startswith("tensor 'y0' has no range")
        return
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    listed = ", ".join(f"'{one}'" for one in missing[:3])
    assert f"{len(missing)} tensors have no range: {listed}{more}; calibrate" in str(refused.value)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ((0,), DType.UINT8),
        ((255,), DType.UINT8),
        ((256,), DType.UINT16),
        ((3, 65535), DType.UINT16),
        ((3, 65536), DType.INT32),
        ((-1, 127), DType.INT8),
        ((-128, 0), DType.INT8),
        ((-1, 128), DType.INT16),
        ((-129, 0), DType.INT16),
        ((-32768, 32767), DType.INT16),
        ((-32769, 0), DType.INT32),
        ((-1, 32768), DType.INT32),
        ((2**31 - 128, -(2**31)), DType.INT32),
    ],
)
def test_a_constant_of_whole_numbers_has_the_narrowest_type(values: tuple[int, ...], dtype: DType) -> None:
    """uint8, uint16, int8, int16, int32: the first that holds all, at scale 1; the numbers stay (4.13)."""
    layer = OneLayer("constant", (), ((len(values),),), given={"weights": np.array(values, np.float32)})
    quantized = AIPU.quantize(graph_of(layer.network()), parse_settings(AIPU.settings))
    (t,) = quantized.outputs
    found = quantized.tensors[t]
    assert (found.dtype, found.affine.scale.tolist(), found.affine.zero_point.tolist()) == (dtype, [1.0], [0])
    (weights,) = quantized.nodes[0].inputs
    assert np.asarray(quantized.tensors[weights].data).tolist() == list(values)


@pytest.mark.parametrize(
    ("values", "mode", "dtype", "scale"),
    [
        ((0.25, 2.5), "symmetric", DType.UINT8, 2.5 / 255),
        ((-0.25, 2.5), "symmetric", DType.INT8, 5 / 255),
        ((-0.25, 2.5), "asymmetric", DType.INT8, 2.75 / 255),
        ((-1.5, -0.5), "symmetric", DType.INT8, 3 / 255),
        ((0.5, 1.5), "asymmetric", DType.UINT8, 1.5 / 255),
    ],
)
def test_a_constant_of_real_numbers_is_typed_as_an_input(
    values: tuple[float, ...], mode: str, dtype: DType, scale: float
) -> None:
    layer = OneLayer("constant", (), ((len(values),),), given={"weights": np.array(values, np.float32)})
    for bits, (kind, size) in {"8": (dtype, scale), "16": (DType(f"{dtype.value[:-1]}16"), 0.0)}.items():
        settings = [f"activations={mode}", f"activation_bits={bits}"]
        quantized = AIPU.quantize(graph_of(layer.network()), parse_settings(AIPU.settings, settings))
        found = quantized.tensors[quantized.outputs[0]]
        assert found.dtype is kind
        if size:
            assert found.affine.scale[0] == pytest.approx(size, rel=1e-6)
        (weights,) = quantized.nodes[0].inputs
        codes = np.asarray(quantized.tensors[weights].data, np.float64) - float(found.affine.zero_point[0])
        assert codes * float(found.affine.scale[0]) == pytest.approx(values, abs=found.affine.scale[0] * 0.51)
