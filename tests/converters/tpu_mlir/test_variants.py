"""The manual's own formulas beside TPU-MLIR's, and layers that leave the integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import IMAGE, binary, quantized, run, unary
from tests.support.tpu_mlir_golden import golden
from tests.support.tpu_mlir_golden import quantized as golden_graph
from tflq.graph import Array, DType
from tflq.interpreter import Engine

X: Array = np.random.default_rng(0).uniform(-1, 1, (3, *IMAGE)).astype(np.float32)
SAME = {"a": (-1.0, 1.0), "b": (-1.0, 1.0), "y": (-2.0, 2.0)}


def test_manual_scales_reach_128() -> None:
    tool, manual = (quantized(binary("add", SAME), [f"formulas={f}"]) for f in ("tool", "manual"))
    scales = [{t.name: float(t.affine.scale[0]) for t in g.tensors if t.quantization} for g in (tool, manual)]
    assert scales[0] == {"ay_Add_si8": 1 / 127, "by_Add_si8": 1 / 127, "y_Add": 2 / 127}
    assert scales[1] == {"ay_Add_si8": 1 / 128, "by_Add_si8": 1 / 128, "y_Add": 2 / 128}


def test_manual_add_rounds_once() -> None:
    half = np.full((1, *IMAGE), 0.5 / 127, np.float32)  # code 1 of both inputs, half a step of the output
    one = half * 2
    tool = run(quantized(binary("add", SAME)), [one, one])["y_Add"]
    assert np.all(tool == 2)  # up(1/2) + up(1/2)
    manual = run(quantized(binary("add", SAME), ["formulas=manual"]), [one, one])["y_Add"]
    assert np.all(manual == 1)  # up(1/2 + 1/2)


def test_manual_add_in_the_asymmetric_mode_is_float() -> None:
    ranges = {"a": (-1.0, 0.5), "b": (-0.5, 1.0), "y": (-1.0, 1.5)}
    graph = quantized(binary("add", ranges), ["asymmetric=true", "formulas=manual"])
    found = run(graph, [X, -X])
    affines = {t.name: t.affine for t in graph.tensors if t.quantization}
    a, b, y = (affines[name] for name in ("ay_Add_si8", "by_Add_si8", "y_Add"))
    real = sum(
        (found[name].astype(np.float32) - affine.zero_point[0]) * np.float32(affine.scale[0])
        for name, affine in (("ay_Add_si8", a), ("by_Add_si8", b))
    )
    wanted = np.floor(real / np.float32(y.scale[0]) + 0.5) + y.zero_point[0]
    assert np.array_equal(found["y_Add"], np.clip(wanted, -128, 127))


def test_manual_average_keeps_the_sign_of_the_page() -> None:
    tool, manual = (golden_graph("mini", "asym", f"formulas={f}") for f in ("tool", "manual"))
    offsets = [
        float(node.params.average.offset)  # type: ignore[union-attr]
        for graph in (tool, manual)
        for node in graph.nodes
        if node.operator == "average_pool_2d"
    ]
    assert offsets[0] == -offsets[1] != 0


@pytest.mark.parametrize("mode", ["sym", "asym"])
def test_the_manual_differs_from_the_golden_run(mode: str) -> None:
    theirs = golden("mini", mode).tensors
    graph = golden_graph("mini", mode, "formulas=manual")
    (found,) = Engine(graph).run([theirs["x"].transpose(0, 2, 3, 1)[None]]).values()
    assert not np.array_equal(found[0], theirs["y_Gemm_f32"])
    if mode == "sym":  # the other one has the wrong sign in its pool
        assert np.abs(found[0] - theirs["y_Gemm_f32"]).max() < 0.1


@pytest.mark.parametrize("asymmetric", ["true", "false"])
def test_sums_of_far_scales_are_float16(asymmetric: str) -> None:
    near, far = ({**SAME, "b": (-high, high), "y": (-high, high)} for high in (60.0, 70.0))
    for ranges, kind in ((near, DType.INT8), (far, DType.FLOAT16)):
        graph = quantized(binary("add", ranges), [f"asymmetric={asymmetric}"])
        written = next(t for t in graph.tensors if t.name == "y_Add")
        assert written.dtype is kind
    found = run(graph, [X, X * 7])
    wide = X.astype(np.float16) + (X * 7).astype(np.float16)
    assert np.array_equal(found["y_Add"], wide)
    (node,) = (n for n in graph.nodes if n.operator == "add")
    assert node.attributes.text("engine_reason") == "ranges of the operands differ by 70, above 64"


def test_a_rectifier_stays_in_a_float16_sum() -> None:
    graph = quantized(binary("add", {**SAME, "y": (0.0, 200.0)}, "relu"))
    assert run(graph, [X, X])["y_Relu"].min() == 0


@pytest.mark.parametrize(("mode", "most"), [("F16", 2.0**-10), ("F32", 1e-6)])
def test_layers_in_reals(mode: str, most: float) -> None:
    factors = np.array([0.3, -0.7], np.float32)
    graph = quantized(unary("mul", {"x": (-1, 1), "y": (-1, 1)}, factors), [], [f"mul:mode={mode}"])
    (found,) = (run(graph, [X])[graph.tensors[t].name] for t in graph.outputs)
    assert found.dtype == np.float32
    assert np.abs(found - X * factors).max() <= most


@pytest.mark.parametrize(("operator", "apply"), [("add", np.add), ("mul", np.multiply)])
def test_constants_of_channels_are_depthwise_convolutions(operator: str, apply: np.ufunc) -> None:
    constant = np.array([0.3, -0.7], np.float32)
    graph = quantized(unary(operator, {"x": (-1, 1), "y": (-2, 2)}, constant))
    assert [n.operator for n in graph.nodes] == ["quantize", "depthwise_conv_2d", "dequantize"]
    name = f"y_{operator.capitalize()}_f32"
    assert np.abs(run(graph, [X])[name] - apply(X, constant)).max() < 2 / 127


@pytest.mark.parametrize(
    ("operator", "mode", "kind"),
    [
        ("relu", "false", "uint8"),
        ("relu", "true", "float32"),
        ("exp", "true", "uint8"),
        ("elu", "false", "int8"),
        ("sqrt", "true", "uint8"),
        ("hard_swish", "true", "int8"),
    ],
)
def test_functions_of_one_tensor(operator: str, mode: str, kind: str) -> None:
    function = {
        "relu": lambda x: np.maximum(x, 0),
        "exp": np.exp,
        "elu": lambda x: np.where(x < 0, np.expm1(x), x),
        "sqrt": lambda x: np.sqrt(np.maximum(x, 0)),
        "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    }[operator]
    low = -1.0 if operator in ("elu", "hard_swish") else 0.0
    found = run(quantized(unary(operator, {"x": (-1, 1), "y": (low, 2.8)}), [f"asymmetric={mode}"]), [X])
    written = next(value for name, value in found.items() if name.startswith("y_"))
    assert written.dtype == kind
    real = found.get(f"y_{operator.capitalize()}_f32", list(found.values())[-1])
    assert np.abs(real - function(X)).max() < (0.1 if operator == "sqrt" else 0.03)


def test_a_minimum_that_a_sign_gives_is_float32(tmp_path: Path) -> None:
    """The scale that TPU-MLIR itself makes of such a table; in float64 the minimum would give 0.058669955450980395."""
    table = tmp_path / "table"
    table.write_text("a 2 -1 2\nb 2 -2 1\ny_Mul 13.6007624 1.39673817 13.6007624\n")
    graph = binary("mul", dict.fromkeys("ab", (-2.0, 2.0)) | {"y": (1.0, 13.0)})
    found = quantized(graph, ["asymmetric=true", f"calibration_table={table}"])
    y = next(tensor for tensor in found.tensors if tensor.name.startswith("y"))
    assert (float(y.affine.scale[0]), int(y.affine.zero_point[0])) == (0.058669955251141721, -105)


@pytest.mark.parametrize("operator", ["leaky_relu", "prelu"])
def test_manual_slopes_in_the_asymmetric_mode_are_integers(operator: str) -> None:
    """Y = q for q >= Z, else up((q - Z) m, s) + Z; m / 2^s is the slope, 0.25 here."""
    more = ([np.full((1, 1, 2), 0.25, np.float32) * [1, 2]], {}) if operator == "prelu" else ([], {"alpha": 0.25})
    graph = unary(operator, {"x": (-1.0, 3.0), "y": (-1.0, 3.0)}, *(c.astype(np.float32) for c in more[0]), **more[1])
    sample = np.linspace(-1, 3, 32, dtype=np.float32).reshape(1, *IMAGE)
    kinds = {}
    for formulas in ("tool", "manual"):
        made = quantized(graph, ["asymmetric=true", f"formulas={formulas}"])
        kinds[formulas] = next(n.attributes.text("engine") for n in made.nodes if n.operator == operator)
    assert kinds == {"tool": "F16", "manual": "INT8"}
    values = run(made, [sample])
    (x,) = [v for k, v in values.items() if v.dtype == np.int8 and not k.startswith("y")]
    (y,) = [v for k, v in values.items() if v.dtype == np.int8 and k.startswith("y")]
    zero = int(next(t for t in made.tensors if t.name.startswith("y") and t.quantization).affine.zero_point[0])
    steps = x.astype(int) - zero
    slope = np.array([1, 2]) if operator == "prelu" else np.array([1, 1])
    below = np.floor(steps * slope / 4 + 0.5).astype(int)
    assert zero == -64
    assert y.astype(int).tolist() == (np.where(steps >= 0, steps, below) + zero).tolist()
