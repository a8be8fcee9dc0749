"""Networks that TPU-MLIR lowered and simulated (tests/support/tpu_mlir_recorded.py), layer by layer, on any machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.tpu_mlir_recorded import MODES, lowered, problems, recorded, together
from tflq.converters.tpu_mlir.tables import parse_calibration_table

GROUPS = recorded()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_layers_are_those_of_the_tool(number: int, mode: str, tmp_path: Path) -> None:
    """Types, scales, multipliers, shifts, integers, and reals nearly, from the table that the tool was given.

    Layers that differed when they were recorded are named in the file; docs/internals/evidence/tpu_mlir.md says why.
    """
    group = GROUPS[number]
    table = tmp_path / "table"
    table.write_text(group["table"], encoding="utf-8")
    graph, inputs = together(group["names"])
    known = group.get("differs", {}).get(mode, [])
    found = problems(lowered(graph, mode, table), inputs, group["layers"][mode])
    assert [words for words in found if words.split(": ")[0] not in known] == []


@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_the_table_is_that_of_the_tool(number: int) -> None:
    """Names and, but for the last bits that another C library may give, ranges.

    The recorded table may have lines that no layer of the tool's graph uses.
    """
    made = lowered(together(GROUPS[number]["names"])[0], "sym")
    found = {line.name: line for line in made.extra.table.lines}
    wanted = {line.name: line for line in parse_calibration_table(GROUPS[number]["table"]).lines}
    layers = {layer["name"] for mode in MODES for layer in GROUPS[number]["layers"][mode]}
    assert found.keys() <= wanted.keys()
    assert not (wanted.keys() - found.keys()) & layers
    for name, line in ((name, wanted[name]) for name in found):
        assert np.allclose([*vars(found[name]).values()][1:], [*vars(line).values()][1:], rtol=1e-5, atol=1e-6), name
