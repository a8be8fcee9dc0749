"""What each opset has, as the package onnx says it: types of integers, versions of files, forms of operators."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.onnx_run import run_onnx
from tflq.converters.onnx import ONNX
from tflq.converters.settings import parse_settings
from tflq.errors import UnsupportedError
from tflq.graph import Affine, DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine

onnx = pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")

OPSETS = range(13, 22)
TYPES = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT4, DType.UINT4)
STEP = Affine.per_tensor(np.float32(0.5), 1)


def types_of(operator: str, variable: str, opset: int) -> list[str]:
    schema = onnx.defs.get_schema(operator, opset)
    (found,) = (c for c in schema.type_constraints if c.type_param_str == variable)
    return [kind.removeprefix("tensor(").removesuffix(")") for kind in found.allowed_type_strs]


def is_taken(graph: Graph, opset: int, form: str) -> bool:
    settings = parse_settings(ONNX.settings, [f"form={form}", f"opset={opset}"])
    try:
        written = ONNX.quantize(graph, settings)
    except UnsupportedError as error:
        assert "which QuantizeLinear has from opset 21 on: set opset=21, or form=float" in str(error)  # noqa: PT017
        return False
    assert ONNX.emit(written, Model([graph]))
    return True


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_integers_that_the_opset_has(dtype: DType, opset: int) -> None:
    b = GraphBuilder("weights")
    codes = np.arange(8).reshape(2, 4).astype(dtype.storage)
    given = [b.input("x", (1, 4), DType.FLOAT32), b.constant("w", codes, STEP, dtype)]
    weights = b.build([b.add("fully_connected", given, (1, 2), DType.FLOAT32)])
    version = "T1" if opset >= 19 else "T"
    assert is_taken(weights, opset, "weights") == (dtype.value in types_of("DequantizeLinear", version, opset))
    if dtype.bits >= 8:
        b = GraphBuilder("activations")
        values = b.build([b.add("tanh", [b.input("x", (1, 4), dtype, STEP)], (1, 4), dtype, STEP)])
        version = "T3" if opset >= 23 else "T2"
        assert is_taken(values, opset, "qdq") == (dtype.value in types_of("QuantizeLinear", version, opset))


@pytest.mark.parametrize("opset", OPSETS)
def test_forms_that_the_opset_has(opset: int) -> None:
    b, draw = GraphBuilder("forms"), np.random.default_rng(opset)
    x, axes = b.input("x", (2, 3, 4), DType.FLOAT32), b.constant("axes", np.array([0, 2], np.int32))
    found = [
        b.add(operator, [x, axes], (1, 3, 1) if keep else (3,), DType.FLOAT32, keep_dims=keep)
        for operator in ("reduce_max", "reduce_min", "reduce_prod", "mean", "sum")
        for keep in (False, True)
    ]
    found += [b.add("gelu", [x], (2, 3, 4), DType.FLOAT32, approximate=a) for a in (False, True)]
    places, shape = (b.constant(n, np.array(v, np.int32)) for n, v in (("places", [[4], [1]]), ("shape", [6, 2])))
    rows = b.constant("rows", draw.normal(size=(2, 2)).astype(np.float32))
    found.append(b.add("scatter_nd", [places, rows, shape], (6, 2), DType.FLOAT32))
    graph = b.build(found)
    written = ONNX.quantize(graph, parse_settings(ONNX.settings, [f"opset={opset}"]))
    (data,) = ONNX.emit(written, Model([graph])).values()
    model = onnx.load_from_string(data)
    assert [entry.version for entry in model.opset_import] == [opset]
    assert model.ir_version == max(8, onnx.helper.find_min_ir_version_for(model.opset_import))
    given = draw.normal(size=(2, 2, 3, 4)).astype(np.float32)
    ours = Engine(written, ONNX.arithmetic).run([given])
    for t, theirs in zip(written.outputs, run_onnx(data, [given]), strict=True):
        assert np.allclose(ours[t], theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("opset", OPSETS)
def test_sums_of_repeated_places(opset: int) -> None:
    b = GraphBuilder("repeated")
    places, shape = (b.constant(n, np.array(v, np.int32)) for n, v in (("places", [[4], [4]]), ("shape", [6, 2])))
    graph = b.build([b.add("scatter_nd", [places, b.input("x", (2, 2), DType.FLOAT32), shape], (6, 2), DType.FLOAT32)])
    settings = parse_settings(ONNX.settings, [f"opset={opset}"])
    schema = onnx.defs.get_schema("ScatterND", opset)
    if "reduction" not in schema.attributes:
        with pytest.raises(UnsupportedError, match="ONNX adds them up from opset 16 on: set opset=16"):
            ONNX.quantize(graph, settings)
        return
    (data,) = ONNX.emit(ONNX.quantize(graph, settings), Model([graph])).values()
    given = np.random.default_rng(3).normal(size=(2, 2, 2)).astype(np.float32)
    wanted = np.zeros((2, 6, 2), np.float32)
    wanted[:, 4] = given.sum(axis=1)
    assert np.allclose(run_onnx(data, [given])[0], wanted, rtol=1e-5, atol=1e-5)
