"""Explanations end in what the interpreter stores; the interpreter itself is held against TFLite and golden data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from site_pages.citations import places

from tests.support.data import data_files, data_path
from tests.support.tracked import ROOT
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target, target_names
from tflq.converters.tflite import read_model
from tflq.diagnosis.explain import Explainer, Step
from tflq.errors import GraphError, InputError, OptionError
from tflq.graph import Affine, DType, Graph, GraphBuilder, Node, Operands
from tflq.interpreter import Engine
from tflq.interpreter.kernels.aipu import multiplier as aipu_multiplier
from tflq.interpreter.kernels.gap9 import linear as gap9_linear
from tflq.interpreter.kernels.tpu_mlir import linear as tpu_mlir_linear
from tflq.interpreter.numerics.fixed_point import rounding_divide_by_pot
from tflq.interpreter.recording.primitive import primitive
from tflq.interpreter.registry import Arithmetic, Kernel, arithmetic, arithmetics, register_arithmetic
from tflq.parallel.executions import Execution, as_is, for_target
from tflq.sampling import RandomSamples

ELEMENTS = 200
"""Random elements of each tensor."""
TINY = ("kws_ref_model", "vww_96_int8", "pretrainedResnet_quant", "ad01_int8", "str_ww_ref_model")
DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


def explainer(execution: Execution, seed: int = 0) -> Explainer:
    inputs = RandomSamples(execution.source, 1, seed).take(0, 1)
    return Explainer(execution.engine, execution.encode(inputs))


def target(path: str, name: str) -> Execution:
    found = find_target(name)
    return for_target(read_model(path).main, found, parse_settings(found.settings, (), ()))


def check_random_elements(found: Explainer, count: int = ELEMENTS) -> None:
    random = np.random.default_rng(1)
    assert found.tensors()
    for t in found.tensors():
        try:
            value = found.value(t)
        except (GraphError, InputError):  # refused like in every other run
            continue
        for flat in random.integers(0, value.size, count):
            index = tuple(int(i) for i in np.unravel_index(flat, value.shape))
            explanation = found.explain(t, index)
            assert explanation.steps[-1].value == value[index], (explanation.tensor, index)
            assert all(part.is_sound for part in explanation.parts)


@pytest.mark.parametrize("name", TINY)
def test_tflite_of_the_benchmark_models(name: str) -> None:
    check_random_elements(explainer(as_is(read_model(data_path("models", f"{name}.tflite")))))


@pytest.mark.parametrize("name", target_names())
def test_kws_of_each_target(name: str) -> None:
    check_random_elements(explainer(target(str(data_path("models", "kws_ref_model.tflite")), name)))


@pytest.mark.parametrize("name", target_names())
@pytest.mark.parametrize("model", ["pretrainedResnet_quant", "str_ww_ref_model"])
def test_additions_and_quantize_of_each_target(model: str, name: str) -> None:
    check_random_elements(explainer(target(str(data_path("models", f"{model}.tflite")), name)), 5)


def test_operators_that_no_benchmark_model_has() -> None:
    builder = GraphBuilder()
    scale = Affine.per_tensor(np.float32(0.05), 3)
    shape = (1, 6, 6, 2)
    real = builder.input("real", shape, DType.FLOAT32)
    x = builder.add("quantize", [real], shape, DType.INT8, scale)
    r = builder.add("relu6", [x], shape, DType.INT8, Affine.per_tensor(np.float32(0.03), -100))
    s = builder.add("sub", [r, x], shape, DType.INT8, Affine.per_tensor(np.float32(0.06), 1))
    pads = builder.constant("pads", np.array([[0, 0], [1, 0], [0, 2], [0, 0]], np.int32))
    p = builder.add("pad", [s, pads], (1, 7, 8, 2), DType.INT8, Affine.per_tensor(np.float32(0.06), 1))
    window = {"filter_height": 3, "filter_width": 2, "stride_h": 2, "stride_w": 1, "padding": "same"}
    m = builder.add("max_pool_2d", [p], (1, 4, 8, 2), DType.INT8, Affine.per_tensor(np.float32(0.06), 1), **window)
    a = builder.add("average_pool_2d", [m], (1, 2, 8, 2), DType.INT8, Affine.per_tensor(np.float32(0.06), 1), **window)
    q = builder.add("quantize", [a], (1, 2, 8, 2), DType.UINT8, Affine.per_tensor(np.float32(0.05), 131, signed=False))
    d = builder.add("dequantize", [q], (1, 2, 8, 2), DType.FLOAT32)
    engine = Engine(builder.build([d]))
    values = np.random.default_rng(0).normal(0, 3, (1, *shape)).astype(np.float32)
    check_random_elements(Explainer(engine, [values]), 100)


def pairs_and_a_mean() -> Graph:
    """Return sub, mul, max pool and mean of int8: what no benchmark model has."""
    builder = GraphBuilder()
    shape, pooled = (1, 6, 6, 4), Affine.per_tensor(np.float32(0.09), -5)
    x = builder.input("x", shape, DType.INT8, Affine.per_tensor(np.float32(0.05), 3))
    y = builder.input("y", shape, DType.INT8, Affine.per_tensor(np.float32(0.03), -2))
    difference = builder.add("sub", [x, y], shape, DType.INT8, Affine.per_tensor(np.float32(0.07), 1))
    product = builder.add("mul", [difference, y], shape, DType.INT8, pooled)
    largest = builder.add(
        "max_pool_2d",
        [product],
        (1, 3, 3, 4),
        DType.INT8,
        pooled,
        filter_height=2,
        filter_width=2,
        stride_h=2,
        stride_w=2,
        padding="valid",
    )
    axes = builder.constant("axes", np.array([1, 2], np.int32))
    mean = builder.add(
        "mean", [largest, axes], (1, 4), DType.INT8, Affine.per_tensor(np.float32(0.05), 2), keep_dims=False
    )
    return builder.build([mean])


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("tflite", ()),
        ("openvino", ()),
        ("tpu-mlir", ()),
        ("tpu-mlir", ("asymmetric=true",)),
        ("tpu-mlir", ("formulas=manual",)),
        ("tpu-mlir", ("formulas=manual", "asymmetric=true")),
    ],
)
def test_pairs_and_means(name: str, settings: tuple[str, ...]) -> None:
    found = find_target(name)
    chosen = parse_settings(found.settings, settings, ())
    check_random_elements(explainer(for_target(pairs_and_a_mean(), found, chosen)))


NOT_RECORDED = {
    "if": "control flow",
    "while": "control flow",
    "stablehlo_composite": "control flow",
    "where": "numpy's argwhere",
    "non_max_suppression_v5": "numpy's flatnonzero",
}
"""What the corpus has of operators whose explanation ends in a step that says what was not recorded."""


@pytest.mark.parametrize("path", data_files("corpus") or [None], ids=lambda p: p.stem if p else "no data")
def test_every_operator_of_the_corpus(path: Path | None) -> None:
    """Every operator is explained; what is not recorded is control flow, or one of numpy's functions, and says so."""
    try:
        found = explainer(as_is(read_model(path or data_path("corpus"))))
    except (GraphError, InputError):  # refused like in every other run
        return
    random = np.random.default_rng(0)
    for t in found.tensors():
        try:
            value = found.value(t)
        except (GraphError, InputError):  # refused like in every other run
            continue
        for flat in random.integers(0, value.size, min(3, value.size)):
            index = tuple(int(i) for i in np.unravel_index(flat, value.shape))
            explanation = found.explain(t, index)
            assert all(part.is_sound for part in explanation.parts), (explanation.tensor, index)
            words = " ".join(step.formula for step in explanation.steps)
            assert "not recorded" not in words or NOT_RECORDED.get(explanation.operator, "?") in words, words


def test_a_relu_of_a_target_is_explained_from_its_convolution_on() -> None:
    found = explainer(target(str(DIGITS), "gap9-ne16"))
    t = next(n.outputs[0] for n in found.graph.nodes if n.operator == "relu")
    explanation = found.explain(t, (0, 1, 1, 2))
    assert [part.operator for part in explanation.parts] == ["conv_2d", "relu"]
    assert explanation.parts[0].steps[-1].value == found.value(found.find(explanation.parts[0].tensor))[0, 1, 1, 2]


def test_refusals_name_what_there_is() -> None:
    found = explainer(as_is(read_model(DIGITS)))
    with pytest.raises(OptionError, match="is no tensor of the graph; nearest are "):
        found.find("conv")
    with pytest.raises(OptionError, match="is an input or a constant: no operator computes it"):
        found.find(found.graph.tensors[found.graph.inputs[0]].name)
    with pytest.raises(OptionError, match=r"has shape \[1, 10\], the index \[10\] is out of range"):
        found.explain(found.graph.outputs[0], [10])


@primitive("rounded", "floor({x} / 2^{shift})")
def floored(x, shift):
    return np.asarray(x, np.int64) >> shift


@primitive("rounded", "floor({x} * {m} / 2^{n})")
def scaled_and_floored(x, m, n):
    return np.floor(np.asarray(x, np.float64) * np.asarray(m, np.float64) * np.exp2(-np.asarray(n, np.float64)))


@pytest.mark.parametrize(
    ("name", "module", "rounding", "changed_rounding"),
    [
        ("tpu-mlir", tpu_mlir_linear, "shift_half_up", floored),
        ("gap9-ne16", gap9_linear, "norm", floored),
        ("gap9-sq8", gap9_linear, "norm", floored),
        ("aipu", aipu_multiplier, "scaled", scaled_and_floored),
    ],
)
def test_a_changed_rounding_is_followed(
    monkeypatch: pytest.MonkeyPatch, name: str, module: ModuleType, rounding: str, changed_rounding: object
) -> None:
    """One rule stands once: with floor in place of its rounding, engine and explanation both round down."""
    path = str(data_path("models", "kws_ref_model.tflite"))
    before = explainer(target(path, name))
    assert all(before.value(t).size for t in before.tensors())  # computed before the rounding changes
    monkeypatch.setattr(module, rounding, changed_rounding)
    after = explainer(target(path, name))
    filters = ("conv_2d", "convolution")
    t = next(t for t in after.tensors() if after.graph.nodes[after._writers[t]].operator in filters)
    changed = np.argwhere(before.value(t) != after.value(t))
    assert len(changed)
    for index in changed[:20].tolist():
        old, new = before.explain(t, index), after.explain(t, index)
        assert new.is_sound
        assert new.stored == old.stored - 1
        assert [s.formula.startswith("floor(") for s in new.steps if s.label == "rounded"] == [True]


@dataclass(frozen=True)
class Scaled:
    multiplier: int
    shift: int


def lower_scaled(node: Node, operands: Operands) -> Scaled:
    return Scaled(3, 2)


def run_scaled(params: Scaled, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Bare numpy and one primitive: result = clip(RDBP(sum of x along the last axis * 3, 2)), in an empty array."""
    result = np.empty((*x.shape[:-1], 1), np.int8)
    total = np.asarray(x, np.int32).sum(axis=-1, keepdims=True)
    total *= params.multiplier
    result[...] = np.clip(rounding_divide_by_pot(total, params.shift), -128, 127)
    return (np.flip(result, axis=1),)


def test_a_kernel_from_outside_is_explained_without_code_of_its_own() -> None:
    register_arithmetic(Arithmetic("outside", {"scaled": Kernel(lower_scaled, run_scaled, __name__)}))
    builder = GraphBuilder()
    scale = Affine.per_tensor(np.float32(0.05), 0)
    x = builder.input("x", (4, 3), DType.INT8, scale)
    graph = builder.build([builder.add("scaled", [x], (4, 1), DType.INT8, scale)])
    found = Explainer(Engine(graph, arithmetic="outside"), [np.arange(-20, 28, 4, dtype=np.int8).reshape(1, 4, 3)])
    check_random_elements(found)
    steps = found.explain(1, (0, 0)).steps
    assert [step.label for step in steps] == [
        *("inputs", "sum", "multiplier", "times multiplier", "shift", "rounded", "stored value")
    ]
    assert steps[0].value == (16, 20, 24)
    assert steps[5].formula == "RDBP(180, 2) = 180 / 2^2, half away from 0"
    assert steps[-1].formula == "clamp(45, (-128), 127)"


def test_a_function_of_a_library_is_one_step_by_name() -> None:
    builder = GraphBuilder()
    x = builder.input("x", (4,), DType.FLOAT32)
    exp = builder.add("exp", [x], (4,), DType.FLOAT32)
    found = Explainer(Engine(builder.build([exp])), [np.arange(4, dtype=np.float32)[None]])
    steps = found.explain(exp, (2,)).steps
    assert [step.label for step in steps] == ["input", "stored value"]
    assert steps[-1].formula == "float32(exp(2.0))"


def bias_of(path: Path, name: str | None) -> tuple[Step, Explainer, int]:
    """Return the step "bias" of an element of the first convolution, its explainer and its tensor."""
    model = read_model(path)
    found = explainer(as_is(model) if name is None else target(str(path), name))
    t = next(t for node in found.graph.nodes if node.operator == "conv_2d" for t in node.outputs)
    return next(step for step in found.explain(t, (3, 4, 3)).steps if step.label == "bias"), found, t


@pytest.mark.parametrize("name", [None, "gap9-ne16"])
def test_a_bias_says_that_a_zero_point_is_folded_in(name: str | None) -> None:
    step, found, t = bias_of(DIGITS, name)
    node, _ = found.inputs_of(t)
    weights, bias = (np.asarray(found.graph.tensors[i].data, np.int64) for i in node.inputs[1:3])
    zero_point = int(found.graph.tensors[node.inputs[0]].affine.zero_point[0])
    shift = 128 if weights.min() >= 0 else 0  # NE16 stores w + 128
    total = int((weights[3] - shift).sum())
    assert step.value == bias[3] - zero_point * total
    if zero_point:
        operand = f"({zero_point})" if zero_point < 0 else f"{zero_point}"
        factor = f"({total})" if total < 0 else f"{total}"
        words = f"bias {bias[3]} of the graph, zero point folded in: {bias[3]} - {operand} * {factor}"
        assert step.formula == words
    else:
        assert step.formula == ""


def test_a_formula_stands_in_the_section_that_is_named() -> None:
    """A rectifier of GAP9 named the section on ranges."""
    for arithmetic_name in arithmetics():
        for operator, kernel in arithmetic(arithmetic_name).kernels.items():
            assert "Source:" not in kernel.source, operator
            assert len(kernel.source) < 200, operator
            for citation, place in places(kernel.source):
                assert place is not None, (operator, citation)
                page, _, _anchor = place.partition("#")
                assert (ROOT / "docs" / page).is_file(), (operator, citation)
    relu = arithmetic("gap9").kernels["relu"]
    (place,) = [place for _, place in places(relu.source)]
    assert place is not None
    assert "* ReLU: max(x, Z)." in (ROOT / "docs" / place.partition("#")[0]).read_text("utf-8")
    assert "integer_ops/conv.h" in arithmetic("tflite").kernels["conv_2d"].source
