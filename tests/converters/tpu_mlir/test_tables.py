"""The two tables: what is written parses back, and what is wrong is named with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.data import data_path
from tflq.converters.tpu_mlir.tables import (
    CalibrationLine,
    CalibrationTable,
    format_calibration_table,
    format_quantisation_table,
    parse_calibration_table,
)
from tflq.errors import FormatError

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


def test_quantisation_table_has_a_line_for_each_layer() -> None:
    modes = {"y_Conv": "F16", "z_Gemm": "F32"}
    assert format_quantisation_table(modes) == "# op_name   quantize_mode\ny_Conv F16\nz_Gemm F32\n"
