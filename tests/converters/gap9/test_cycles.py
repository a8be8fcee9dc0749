"""The cycle formula against NE16's open RTL, and the planner against the registers that ran in it."""

from __future__ import annotations

import json
from typing import Any

from tests.support.data import data_path
from tflq.converters.gap9.jobs.cycles import cycles_of
from tflq.converters.gap9.jobs.filters import Filter, streamable
from tflq.interpreter.operands.sliding_windows import Window


def of_row(row: dict[str, Any]) -> Filter:
    """The filter of a row of ne16_cycles.json; what its cases leave away stands in their kind."""
    top, right, bottom, left = row["padding"]
    padding = {} if row["mode"] == "taps" else {"top": top, "bottom": bottom, "left": left, "right": right}
    rows, columns, outputs = row["out"]
    return Filter(
        mode=row["mode"],
        window=Window(tuple(row["kernel"]), tuple(row["stride"]), **padding),
        padding_value=0,
        size_in=tuple(row["in"]),
        size_out=(rows, columns, streamable(outputs) if row["mode"] == "taps" else outputs),
        bits=row["bits"],
        weight_zero_point=1 << (row["bits"] - 1),
        wide=row["wide"],
        signed=row["signed"],
        out_bits=row["out_bits"],
        normalize=row["kind"] not in ("sums", "wide"),
        biased=row["kind"] != "nobias",
        shifts=row["kind"] != "oneshift",
    )


def test_the_formula_is_the_rtl() -> None:
    rows = json.loads(data_path("cases", "ne16", "ne16_cycles.json").read_text())
    assert len(rows) == 150
    wrong = {(r["kind"], r["seed"]): (cycles_of(of_row(r)).total, r["cycles"]) for r in rows}
    assert {key: pair for key, pair in wrong.items() if pair[0] != pair[1]} == {}


def test_the_worked_job() -> None:
    """1x1, 25x5, 64 -> 64: 18 subtiles, 2 blocks of 32, 4 (33 + 32) + 37 + 13 = 310 cycles each; bits do not count."""
    for bits in range(2, 9):
        layer = Filter("1x1", Window((1, 1)), 0, (25, 5, 64), (25, 5, 64), bits, 1 << (bits - 1))
        found = cycles_of(layer)
        assert (found.total, found.products, found.features) == (11160, 36 * 152, 36 * 76)
