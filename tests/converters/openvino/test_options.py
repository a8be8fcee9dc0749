"""What options allow at their borders, what levels.json states, and in which precision a layer is said to run."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.converters.openvino.networks import image_network, with_ranges
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.errors import OptionError
from tflq.graph import Affine, DType, Graph, GraphBuilder, Model

ALLOWED = sorted({n for bits in range(1, 17) for n in (2**bits - 1, 2**bits)} - {1})


def quantized(*assignments: str, layers: tuple[str, ...] = ()) -> Graph:
    return OPENVINO.quantize(image_network(), parse_settings(OPENVINO.settings, [*assignments], [*layers]))


@pytest.mark.parametrize("levels", sorted({n + d for n in ALLOWED for d in (-1, 0, 1)} - {0}))
def test_levels_are_powers_of_two_or_one_less(levels: int) -> None:
    if levels in ALLOWED:
        made = quantized(f"levels={levels}")
        affine = made.tensors[made.nodes[0].outputs[0]].affine
        assert affine.maximum_code - affine.minimum_code + 1 == levels
    else:
        for settings in ({"assignments": [f"levels={levels}"]}, {"layers": [f"0:levels={levels}"]}):
            with pytest.raises(OptionError, match=f"levels={levels}: allowed are 2.bits and .* from 2 to 65536"):
                quantized(*settings.get("assignments", []), layers=(*settings.get("layers", []),))


@pytest.mark.parametrize("bits", range(1, 17))
def test_bits_are_levels(bits: int) -> None:
    made = quantized(f"activation_bits={bits}")
    affine = made.tensors[made.nodes[0].outputs[0]].affine
    assert affine.maximum_code - affine.minimum_code + 1 == 2**bits


@pytest.mark.parametrize("assignments", [[], ["levels=255"], ["activation_bits=4", "weight_granularity=per-tensor"]])
def test_what_levels_json_states(assignments: list[str]) -> None:
    """low = S * (first - Z), high = low + S * (levels - 1): docs/rules/openvino.md."""
    made = quantized(*assignments)
    listed = json.loads(OPENVINO.emit(made, Model([made], source="small.tflite"))["levels.json"])
    assert (listed["model"], listed["compile"]) == ("small", {"INFERENCE_PRECISION_HINT": "f32"})
    stated = {int(t): facts for t, facts in listed["tensors"].items()}
    assert {*stated} == {t for t, tensor in enumerate(made.tensors) if isinstance(tensor.quantization, Affine)}
    for t, facts in stated.items():
        tensor = made.tensors[t]
        levels = 2**tensor.affine.bits - tensor.affine.narrow_range
        first = -(2 ** (tensor.affine.bits - 1)) + tensor.affine.narrow_range
        assert (facts["name"], facts["levels"]) == (tensor.name, levels)
        assert facts["scale"] == tensor.affine.scale.tolist()
        assert facts["zero_point"] == np.broadcast_to(tensor.affine.zero_point, len(facts["scale"])).tolist()
        for scale, zero, low, high in zip(*(facts[k] for k in ("scale", "zero_point", "low", "high")), strict=True):
            assert low == pytest.approx(scale * (first - zero), rel=1e-6)
            assert high - low == pytest.approx(scale * (levels - 1), rel=1e-6)


@pytest.mark.parametrize(
    ("assignments", "layers", "engines", "words"),
    [
        ([], [], ["u8/i8", "u8/i8", "u8/i8"], ""),
        (["levels=255"], [], ["u8/i8"] * 3, "255 levels: the plug-in's int8 departs from FakeQuantize; use 256"),
        (["levels=15"], [], ["u8/i8"] * 3, "15 levels: the plug-in's int8 departs from FakeQuantize; use 16"),
        (["levels=16"], [], ["u8/i8"] * 3, ""),
        (["levels=128"], [], ["f32"] * 3, "128 levels; int8 needs one of"),
        (["activation_bits=16"], [], ["f32"] * 3, "65536 levels; int8 needs one of"),
        (["precision=float"], [], ["f32"] * 3, "its inputs are not quantized"),
        (["weight_scheme=asymmetric"], [], ["f32"] * 3, "weights with zero points; int8 needs weight_scheme=symmetric"),
        ([], ["0:precision=float"], ["f32", "u8/i8", "u8/i8"], "its inputs are not quantized"),
    ],
)
def test_in_which_precision_a_layer_runs(
    assignments: list[str], layers: list[str], engines: list[str], words: str
) -> None:
    made = quantized(*assignments, layers=tuple(layers))
    filters = [n for n in made.nodes if n.operator in ("conv_2d", "fully_connected")]
    assert [n.attributes.text("engine") for n in filters] == engines
    assert filters[0].attributes.text("engine_reason").startswith(words)
    assert bool(filters[0].attributes.text("engine_reason")) == bool(words)
    assert all("engine" not in n.attributes for n in made.nodes if n.operator in ("softmax", "reshape", "quantize"))


@pytest.mark.parametrize("name", ["input", "output"])
def test_bytes_at_one_end(name: str) -> None:
    graph = quantized(f"{name}=int8")
    kinds = {end: graph.tensors[t].dtype.value for end, (t,) in (("input", graph.inputs), ("output", graph.outputs))}
    assert kinds == {"input": "float32", "output": "float32", name: "int8"}


MOVES: dict[str, tuple[tuple[int, ...], list[object], dict[str, object]]] = {
    "max_pool_2d": ((1, 6, 6, 4), [], {"filter_height": 2, "filter_width": 2, "stride_h": 1, "stride_w": 1,
                                        "padding": "same"}),
    "pad": ((1, 6, 6, 4), [((0, 0), (0, 0), (0, 0), (0, 0))], {}),
    "reshape": ((1, 4, 9, 4), [(1, 4, 9, 4)], {"new_shape": (1, 4, 9, 4)}),
    "transpose": ((1, 6, 6, 4), [(0, 2, 1, 3)], {}),
}  # fmt: skip


@pytest.mark.parametrize("operator", MOVES)
@pytest.mark.parametrize("source", ["input", "tanh", "softmax"])
@pytest.mark.parametrize("count", [1, 2])
def test_levels_go_through_what_moves_them(operator: str, source: str, count: int) -> None:
    """The levels of a real value stand where it is made, and the filter behind the moves reads integers."""
    b = GraphBuilder("moved")
    x = b.input("x", (1, 6, 6, 4), DType.FLOAT32)
    y = x if source == "input" else b.add(source, [x], (1, 6, 6, 4), DType.FLOAT32)
    shape, numbers, options = MOVES[operator]
    for _ in range(count):
        given = [b.constant("c", np.array(n, np.int32)) for n in numbers]
        y = b.add(operator, [y, *given], shape, DType.FLOAT32, **options)  # type: ignore[arg-type]
    w = b.constant("w", np.ones((5, 1, 1, 4), np.float32))
    window = {"padding": "same", "stride_h": 1, "stride_w": 1}
    y = b.add("conv_2d", [y, w], (*shape[:3], 5), DType.FLOAT32, **window)  # type: ignore[arg-type]
    made = OPENVINO.quantize(settled_graph(with_ranges(b.build([y]))), parse_settings(OPENVINO.settings))
    moves = [n for n in made.nodes if n.operator == operator]
    assert [made.tensors[n.outputs[0]].dtype for n in moves] == [DType.INT8] * count
    (layer,) = [n for n in made.nodes if n.operator == "conv_2d"]
    assert layer.attributes.text("engine") == "u8/i8"
