"""The two tables: what is written parses back, and what is wrong is named with its line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.converters.tpu_mlir.networks import FLOAT, quantized, ranged
from tests.support.data import data_path
from tflq.converters.tpu_mlir import TPU_MLIR
from tflq.converters.tpu_mlir.quantize import TableOrigin
from tflq.converters.tpu_mlir.tables import (
    CalibrationLine,
    CalibrationTable,
    few,
    format_calibration_table,
    format_quantization_table,
    parse_calibration_table,
)
from tflq.errors import FormatError
from tflq.graph import DType, GraphBuilder, Model

numbers = st.floats(-1e9, 1e9)


@given(
    st.dictionaries(st.from_regex(r"[a-z]\w{0,9}", fullmatch=True), st.tuples(st.floats(1e-30, 1e9), numbers, numbers))
)
def test_calibration_table_parses_back(rows: dict[str, tuple[float, float, float]]) -> None:
    lines = tuple(CalibrationLine(n, t, min(a, b), max(a, b)) for n, (t, a, b) in rows.items())
    text = format_calibration_table(CalibrationTable(lines))
    assert "e" not in "".join(row.split(" ", 1)[1] for row in text.splitlines()[1:])
    assert parse_calibration_table(text).lines == lines


@pytest.mark.parametrize("name", ["mini_cali", "ops_cali", "ties_sym_cali", "ties_asym_cali"])
def test_the_tools_own_tables(name: str) -> None:
    text = (data_path("golden", "tpu_mlir") / name).read_text(encoding="utf-8")
    rows = [row.split() for row in text.splitlines() if not row.startswith("#")]
    found = parse_calibration_table(text)
    assert [(n.name, n.threshold, n.minimum, n.maximum) for n in found.lines] == [
        (row[0], *map(float, row[1:])) for row in rows
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x 1.0 -1.0", "line 3: found 3 fields, a line has 4: name threshold min max"),
        ("x 1.0 -1.0 1.0 2.0", "line 3: found 5 fields"),
        ("x one -1.0 1.0", "line 3: threshold of 'x' is 'one', a finite number is needed"),
        ("x 1.0 nan 1.0", "line 3: min of 'x' is 'nan'"),
        ("x 1.0 -1.0 inf", "line 3: max of 'x' is 'inf'"),
        ("x 0.0 -1.0 1.0", "line 3: threshold of 'x' is 0.0; it must be above 0"),
        ("x 1.0 2.0 1.0", "line 3: min of 'x' is 2.0, above max 1.0"),
        ("y_Conv 1.0 -1.0 1.0", "line 3: tensor 'y_Conv' has a line already"),
        ("#int4_th", "line 3: section #int4_th is not read"),
    ],
)
def test_wrong_lines(row: str, message: str) -> None:
    text = f"# a comment\ny_Conv 1.0 -1.0 1.0\n{row}\n"
    with pytest.raises(FormatError, match=f"^cali: {message}"):
        parse_calibration_table(text, "cali")


def test_a_range_of_one_number_is_a_range() -> None:
    (line,) = parse_calibration_table("y_Conv 1.0 0.5 0.5\n").lines
    assert (line.threshold, line.minimum, line.maximum) == (1.0, 0.5, 0.5)
    (line,) = parse_calibration_table("y_Conv 1e-30 -1.0 0\n").lines
    assert line.threshold == 1e-30


def test_quantization_table_has_a_line_for_each_layer() -> None:
    modes = {"y_Conv": "F16", "z_Gemm": "F32"}
    assert format_quantization_table(modes) == "# op_name   quantize_mode\ny_Conv F16\nz_Gemm F32\n"


def test_a_gelu_of_a_sum_is_called_gelu() -> None:
    """Its first product reads the sum x and the sum 1 + erf: only one of them leads to the erf."""
    b = GraphBuilder("gelu")
    x, total, y = b.input("x", (1, 4), FLOAT), b.tensor("total", (1, 4), FLOAT), b.tensor("y", (1, 4), FLOAT)
    b.node("add", [x, b.constant("c", np.array([[1, 2, 3, 4]], np.float32))], [total], fused_activation_function="none")
    b.node("gelu", [total], [y], approximate=False)
    graph = quantized(ranged(b.build([y]), {"x": (-1, 1), "total": (-1, 4), "y": (-0.2, 4)}))
    assert isinstance(graph.extra, TableOrigin)
    assert [line.name for line in graph.extra.table.lines] == ["x", "total_Add", "y_GELU"]


def test_what_is_rescaled_for_a_concatenation_is_called_as_it_arrives() -> None:
    """ONNX permutes the reshaped rows to an image in front of it, and TPU-MLIR rescales behind that."""
    b = GraphBuilder("join")
    rows, image = b.input("rows", (1, 16, 2), FLOAT), b.input("image", (1, 4, 4, 2), FLOAT)
    made, y = b.tensor("made", (1, 4, 4, 2), FLOAT), b.tensor("y", (1, 4, 4, 4), FLOAT)
    b.node("reshape", [rows, b.constant("shape", np.array([1, 4, 4, 2], np.int32))], [made])
    b.node("concatenation", [made, image], [y], axis=3, fused_activation_function="none")
    ranges = {"rows": (-1.0, 1.0), "made": (-1.0, 1.0), "image": (-4.0, 4.0), "y": (-4.0, 4.0)}
    graph = quantized(ranged(b.build([y]), ranges))
    rescaled = [graph.tensors[node.outputs[0]].name for node in graph.nodes if node.operator == "quantize"]
    assert "y_transpose_Transpose_to_y_Concat" in rescaled


@pytest.mark.parametrize(
    ("count", "words"), [(0, ""), (1, "0"), (5, "0, 1, 2, 3, 4"), (6, "0, 1, 2, 3, 4 and 1 more"),
                         (8, "0, 1, 2, 3, 4 and 3 more")]
)  # fmt: skip
def test_of_many_names_five_are_said(count: int, words: str) -> None:
    assert few(str(i) for i in range(count)) == words


@pytest.mark.parametrize("operator", ["maximum", "minimum"])
@pytest.mark.parametrize(("count", "is_listed"), [(1, False), (4, True)])
def test_extremes_of_constants_that_the_tool_does_not_quantize_have_a_line(
    operator: str, count: int, is_listed: bool
) -> None:
    """Section 5: compared with several numbers in float16, which the table has to say."""
    pytest.importorskip("onnx")
    b = GraphBuilder("extreme")
    x, y = b.input("x", (1, 4), FLOAT), b.tensor("y", (1, 4), FLOAT)
    b.node(operator, [x, b.constant("c", np.arange(count).astype(np.float32) / 4)], [y])
    graph = ranged(b.build([y]), {"x": (-1, 1), "y": (-1, 1)})
    files = TPU_MLIR.emit(quantized(graph), Model([graph]))
    rows = [text.decode().splitlines()[1:] for name, text in files.items() if name.endswith("_qtable")]
    assert rows == ([[f"y_{'Max' if operator == 'maximum' else 'Min'} F16"]] if is_listed else [])


@pytest.mark.parametrize("operator", ["logistic", "softmax"])
def test_results_from_0_to_1_need_no_line(operator: str) -> None:
    b = GraphBuilder("fixed")
    x = b.input("x", (1, 4), FLOAT)
    graph = ranged(b.build([b.add(operator, [x], (1, 4), FLOAT, **({"beta": 1.0} if operator == "softmax" else {}))]),
                   {"x": (-1, 1)})  # fmt: skip
    made = quantized(graph)
    (node,) = (n for n in made.nodes if n.operator == operator)
    found = made.tensors[node.outputs[0]]
    assert (found.dtype, found.affine.scale.tolist(), found.affine.zero_point.tolist()) == (DType.UINT8, [1 / 255], [0])
