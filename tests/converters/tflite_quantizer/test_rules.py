"""What the specification asks for: zero has a quantized value, fixed and shared scales, borders, FAKE_QUANT.

Refusals.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.converters.tflite_quantizer.helpers import engines, quantize, same_in_tflite
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import model_to_bytes
from tflq.converters.tflite_quantizer import TFLITE
from tflq.converters.tflite_quantizer.scales import activation, codes, weights
from tflq.errors import OptionError, UnsupportedError
from tflq.graph import Affine, Array, DType, GraphBuilder, Model, Range
from tflq.interpreter import Engine, lower
from tflq.oracle import Oracle

FLOAT = DType.FLOAT32
bounds = st.floats(-(2.0**100), 2.0**100, width=32)


def samples(*shape: int, seed: int = 2) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@given(low=bounds, high=bounds, kind=st.sampled_from(("int8", "int16x8")), symmetric=st.booleans())
def test_zero_has_a_code_of_its_own(low: float, high: float, kind: str, symmetric: bool) -> None:
    affine = activation(min(low, high), max(low, high), kind, symmetric)
    assert affine.scale.dtype == np.float32
    assert np.isfinite(affine.scale).all()
    assert affine.scale[0] >= np.float32(2.0**-60)
    assert affine.minimum_code <= affine.zero_point[0] <= affine.maximum_code
    assert codes(np.zeros(1, np.float32), affine)[0] == affine.zero_point[0]


# The values are those of tf.quantization.fake_quant_with_min_max_args' documentation and of TFLite's converter.
@pytest.mark.parametrize(
    ("low", "high", "scale", "zero_point"),
    [
        (-6, 6, 12 / 255, 0),
        (0, 6, 6 / 255, -128),
        (-10, 30, 40 / 255, -64),
        (2, 5, 5 / 255, -128),
        (-3, -1, 3 / 255, 127),
    ],
)
def test_known_activations(low: float, high: float, scale: float, zero_point: int) -> None:
    affine = activation(low, high, "int8")
    assert affine.scale[0] == np.float32(scale)
    assert abs(int(affine.zero_point[0]) - zero_point) <= (low == -6)


def test_degenerate_ranges() -> None:
    assert activation(0, 0, "int8").scale[0] == np.float32(1 / 255)
    assert activation(0, 1e-38, "int16x8").scale[0] == np.float32(2.0**-60)
    with pytest.raises(UnsupportedError, match="both bounds must be finite"):
        activation(0, float("inf"), "int8")


def test_weights_of_dead_channels_and_large_biases() -> None:
    values = np.array([[1.0, -2.0], [0.0, 0.0], [0.5, 0.25]], np.float32)
    plain = weights(values, 0, None, 0.0, "int8", None, 127).affine
    assert plain.scale.tolist() == [np.float32(2 / 127), np.float32(2 / 127), np.float32(0.5 / 127)]
    grown = weights(values, 0, np.array([0.0, 0.0, 1e9]), 0.5, "int8", None, 127).affine
    assert grown.scale[2] == np.float32(1e9 / 0.5 / 2**30)
    assert weights(values, None, None, 0.0, "int8", None, 127).affine.scale.shape == (1,)
    with pytest.raises(UnsupportedError, match="weights must be finite"):
        weights(np.full((2, 2), np.nan, np.float32), 0, None, 0.0, "int8", None, 127)


def _classifier() -> Model:
    """Returns x -> fully_connected -> softmax -> reshape, and concatenation of softmax with x."""
    b = GraphBuilder("classifier")
    x = b.input("x", (1, 8), FLOAT)
    w = b.constant("w", samples(4, 8, seed=5))
    bias = b.constant("b", samples(4, seed=6))
    y = b.add("fully_connected", [x, w, bias], (1, 4), FLOAT, fused_activation_function="none")
    p = b.add("softmax", [y], (1, 4), FLOAT, beta=1.0)
    shape = b.constant("shape", np.array([4], np.int32))
    r = b.add("reshape", [p, shape], (4,), FLOAT, new_shape=(4,))
    c = b.add("concatenation", [p, x], (1, 12), FLOAT, axis=1, fused_activation_function="none")
    return Model([b.build([r, c])])


def test_fixed_and_shared_scales(oracle: Oracle) -> None:
    model, x = _classifier(), samples(8, 1, 8) * np.float32(4)
    found = quantize(model, [x])
    by_operator = {node.operator: found.read.tensors[node.outputs[0]] for node in found.read.nodes}
    assert by_operator["softmax"].affine.scale.tolist() == [1 / 256]
    assert by_operator["softmax"].affine.zero_point.tolist() == [-128]
    assert by_operator["reshape"].affine == by_operator["softmax"].affine
    assert by_operator["concatenation"].affine.scale[0] > 4 / 256
    assert [n.operator for n in found.read.nodes].count("quantize") == 1
    same_in_tflite(found, [x], oracle)


@pytest.mark.parametrize(
    ("assignments", "layers", "operators"),
    [
        ((), ("softmax:type=float",), ["fully_connected", "dequantize", "softmax", "reshape", "concatenation"]),
        (("type=float",), ("0:type=int8",), ["fully_connected", "dequantize", "softmax"]),
        ((), ("0:type=int16x8",), ["fully_connected", "quantize", "softmax"]),
        (("type=int16x8",), ("0:type=int8",), ["fully_connected", "dequantize", "quantize", "softmax"]),
        (("type=float",), ("0:type=weights",), ["dequantize", "fully_connected", "softmax"]),
    ],
)
def test_borders(assignments: tuple[str, ...], layers: tuple[str, ...], operators: list[str], oracle: Oracle) -> None:
    model, x = _classifier(), samples(6, 1, 8)
    found = quantize(model, [x], *assignments, layers=layers)
    ours = iter(node.operator for node in found.read.nodes)
    assert all(operator in ours for operator in operators), [n.operator for n in found.read.nodes]
    same_in_tflite(found, [x], oracle, integers_only=True)


def test_float_inputs_and_outputs(oracle: Oracle) -> None:
    model, x = _classifier(), samples(6, 1, 8)
    found = quantize(model, [x], "inputs=float", "outputs=float")
    assert {found.read.tensors[t].dtype for t in (*found.read.inputs, *found.read.outputs)} == {FLOAT}
    same_in_tflite(found, [x], oracle)


def _trained(grid: Array | None = None) -> Model:
    """Returns a network with FAKE_QUANT operators on input, weights and output, as quantization-aware training has.

    TFLite itself refuses the one of the weights (narrow range); `grid` are weights that need none.
    """
    b = GraphBuilder("trained")
    x = b.input("x", (1, 6), FLOAT)
    seen = b.add("fake_quant", [x], (1, 6), FLOAT, min=-2.0, max=3.0, num_bits=8, narrow_range=False)
    v = b.constant("w", np.random.default_rng(5).uniform(-1, 1, (3, 6)).astype(np.float32) if grid is None else grid)
    if grid is None:
        v = b.add("fake_quant", [v], (3, 6), FLOAT, min=-0.5, max=0.5, num_bits=4, narrow_range=True)
    y = b.add("fully_connected", [seen, v], (1, 3), FLOAT, fused_activation_function="relu")
    z = b.add("fake_quant", [y], (1, 3), FLOAT, min=0.0, max=2.5, num_bits=8, narrow_range=False)
    return Model([b.build([z])])


def test_ranges_of_quantization_aware_training(oracle: Oracle) -> None:
    model, x = _trained(), samples(50, 1, 6)
    found = quantize(model, None)
    assert [node.operator for node in found.read.nodes] == ["fully_connected"]
    (node,) = found.read.nodes
    source, w, out = (found.read.tensors[t] for t in (node.inputs[0], node.inputs[1], node.outputs[0]))
    assert source.affine.scale.tolist() == [np.float32(5 / 255)]
    assert w.affine.scale.tolist() == [np.float32(0.5 / 7)] * 3
    assert w.data is not None
    assert np.abs(w.data).max() == 7
    assert out.affine.scale.tolist() == [np.float32(2.5 / 255)]
    same_in_tflite(found, [x], oracle)
    # TFLite's own FAKE_QUANT kernels on the same samples: the grids are the same, so results are within a step.
    grid = (w.data * w.affine.scale[0]).astype(np.float32)
    trained = oracle.run(model_to_bytes(_trained(grid)), [x], tensors="outputs")
    (reference,) = trained.tensors.values()
    (ours,) = Engine(found.read).run(found.encode([x])).values()
    real = (ours.astype(np.float64) + 128) * 2.5 / 255
    assert np.abs(real - reference.astype(np.float64)).max() <= 2.5 / 255 * 1.01


def test_contradicting_fake_quant_is_refused() -> None:
    b = GraphBuilder("two")
    x = b.input("x", (1, 6), FLOAT)
    y = b.add("fake_quant", [x], (1, 6), FLOAT, min=-2.0, max=3.0, num_bits=8, narrow_range=False)
    z = b.add("fake_quant", [x], (1, 6), FLOAT, min=-2.0, max=4.0, num_bits=8, narrow_range=False)
    with pytest.raises(UnsupportedError, match=r"operator 1 .*tensor 'x' has another FAKE_QUANT"):
        quantize(Model([b.build([y, z])]), None)


def test_half_precision_weights_count_as_constants(oracle: Oracle) -> None:
    b = GraphBuilder("half")
    x = b.input("x", (1, 6), FLOAT)
    half = b.constant("w", samples(3, 6, seed=5).astype(np.float16))
    w = b.add("dequantize", [half], (3, 6), FLOAT)
    y = b.add("fully_connected", [x, w], (1, 3), FLOAT, fused_activation_function="none")
    found = quantize(Model([b.build([y])]), [samples(5, 1, 6)])
    assert engines(found) == ["int8"]
    same_in_tflite(found, [samples(5, 1, 6)], oracle)


def test_padding_with_minus_infinity_does_not_widen_the_range(oracle: Oracle) -> None:
    b = GraphBuilder("pool")
    x = b.input("x", (1, 4, 4, 2), FLOAT)
    paddings = b.constant("p", np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    lowest = b.constant("lowest", np.array(np.finfo(np.float32).min, np.float32))
    y = b.add("padv2", [x, paddings, lowest], (1, 6, 6, 2), FLOAT)
    z = b.add(
        "max_pool_2d",
        [y],
        (1, 4, 4, 2),
        FLOAT,
        padding="valid",
        fused_activation_function="none",
        filter_height=3,
        filter_width=3,
        stride_h=1,
        stride_w=1,
    )
    model, data = Model([b.build([z])]), samples(4, 1, 4, 4, 2)
    found = quantize(model, [data])
    assert found.read.tensors[found.read.outputs[0]].affine.scale[0] < 0.1
    same_in_tflite(found, [data], oracle)


def test_one_constant_for_several_layers_is_written_once(oracle: Oracle) -> None:
    b = GraphBuilder("shared")
    x = b.input("x", (1, 4), FLOAT)
    w = b.constant("w", samples(4, 4, seed=5))
    y = b.add("fully_connected", [x, w], (1, 4), FLOAT, fused_activation_function="none")
    z = b.add("fully_connected", [y, w], (1, 4), FLOAT, fused_activation_function="none")
    found = quantize(Model([b.build([z])]), [samples(5, 1, 4)])
    assert len({node.inputs[1] for node in found.read.nodes}) == 1
    same_in_tflite(found, [samples(5, 1, 4)], oracle)


def test_what_cannot_run_in_integers_says_why() -> None:
    b = GraphBuilder("sum")
    x = b.input("x", (1, 4), FLOAT)
    axis = b.constant("axis", np.array([1], np.int32))
    y = b.add("sum", [x, axis], (1,), FLOAT, keep_dims=False)
    found = quantize(Model([b.build([y])]), [samples(5, 1, 4)])
    assert [n.attributes.text("engine_reason") for n in found.graph.nodes] == [
        "TFLite's reference kernel reads int8 as uint8"
    ]


def test_tensors_without_a_range_are_counted() -> None:
    model = _classifier()
    with pytest.raises(UnsupportedError, match=r"3 of 5 tensors have no range \(first 'x'\): calibrate"):
        TFLITE.quantize(model.main, parse_settings(TFLITE.settings))
    hybrid = TFLITE.quantize(model.main, parse_settings(TFLITE.settings, ["type=hybrid"]))
    assert hybrid.nodes[0].attributes.text("engine") == "hybrid"


def test_operators_that_run_other_graphs_are_refused() -> None:
    graph = _classifier().main
    graph.nodes[0] = replace(graph.nodes[0], operator="while")
    settings = parse_settings(TFLITE.settings)
    (line,) = TFLITE.check(graph, settings)
    assert "it runs other graphs" in line
    with pytest.raises(UnsupportedError, match="cut the graph in front of it"):
        TFLITE.quantize(graph, settings)


def test_an_infinite_range_is_refused() -> None:
    model = _classifier()
    graph = model.main.copy()
    wide = Range(np.array([0], np.float32), np.array([np.inf], np.float32))
    graph.tensors = [t if t.is_constant else replace(t, range=wide) for t in graph.tensors]
    with pytest.raises(UnsupportedError, match=r"tensor 'x': range .*finite"):
        TFLITE.quantize(graph, parse_settings(TFLITE.settings))


def test_unknown_types_are_refused() -> None:
    with pytest.raises(OptionError, match="allowed is int8, int16x8, weights, hybrid, float16, float"):
        parse_settings(TFLITE.settings, ["type=int4"])


def test_every_affine_is_float32() -> None:
    found = quantize(_classifier(), [samples(4, 1, 8)])
    scales = [t.quantization.scale.dtype for t in found.graph.tensors if isinstance(t.quantization, Affine)]
    assert set(scales) == {np.dtype(np.float32)}


@pytest.mark.parametrize("kind", ["int8", "weights", "hybrid"])
def test_a_lowered_graph_gives_the_same_file(kind: str) -> None:
    model = _classifier()
    found = quantize(model, [samples(4, 1, 8)], f"type={kind}")
    (content,) = TFLITE.emit(lower(found.graph), model).values()
    assert content == found.content
