"""Expressions: every tensor and every inner integer of NNTool's 240 dumps, its flaws and its refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_files
from tests.support.gap9_expressions import Case
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model
from tflq.errors import UnsupportedError
from tflq.graph import Array
from tflq.interpreter import lower

_FOLDER = ("cases", "gap9_expressions")
NAMES = [p.name.removesuffix(".json") for p in data_files(*_FOLDER, pattern="*.json")]
REFUSED = data_files(*_FOLDER, "refused")


@pytest.mark.parametrize("name", NAMES)
def test_equals_the_tool(name: str) -> None:
    case = Case.of(name, "nntool")
    found = case.compared()
    assert not found.differences
    assert found.elements > 0
    assert found.inner > 0 or name.startswith("s_add")  # an Add of equal shapes stays the Add kernel


@pytest.mark.parametrize("name", NAMES)
def test_right_results_differ_only_where_a_warning_says_so(name: str) -> None:
    case = Case.of(name, "exact")
    assert case.departures or not case.compared().differences


def test_all_golden_files_are_read() -> None:
    if NAMES:
        assert (len(NAMES), len(REFUSED)) == (240, 17)


FLAWS: dict[str, tuple[str, Callable[[Array], Array] | None]] = {
    "k_max_raw.int8.sq8": ("22.1", lambda x: np.maximum(x, -0.7)),
    "k_mul_raw.int8.sq8": ("22.1", lambda x: x * 0.37),
    "s_sqdiff.float.sq8": ("22.1", None),
    "s_exp_big.int8.sq8": ("22.2", np.exp),
    "c_negmax.int8.sq8": ("22.3", lambda x: np.maximum(x * -2, 1)),
    "r_18.int8.sq8": ("22.3", None),
    "c_relu6mul.float.sq8": ("22.4", None),
    "s_abs.int8.sq8": ("22.5", np.abs),
    "v_expfc.int8.ne16": ("22.6", np.exp),
    "b_rank2.int8.sq8": ("22.7", None),
    "s_sin_wide.int8.sq8": ("22.8", np.sin),
    "k_pow05.float.sq8": ("22.9", lambda x: np.sqrt(np.maximum(x, 0))),
}
"""Dump -> the section that its warning names, and what the expression computes where it has one input."""


@pytest.mark.parametrize("name", FLAWS)
def test_flaws_are_warned_of_and_put_right(name: str) -> None:
    section, function = FLAWS[name]
    case, vendor = Case.of(name, "exact"), Case.of(name, "nntool")
    assert section in case.departures["expr_0"]
    assert case.departures == vendor.departures
    assert case.compared().differences
    assert not vendor.compared().differences
    if function is not None:
        assert _error(case, function) < 4
        assert _error(vendor, function) > 10


def _error(case: Case, function: Callable[[Array], Array]) -> float:
    """The largest distance to the real function, within the output's range, in output steps."""
    node = next(n for n in case.graph.nodes if n.name == "expr_0")
    x, y = (case.graph.tensors[t].affine for t in (node.inputs[0], node.outputs[0]))
    real = function((case.values[node.inputs[0]].astype(np.float64) - x.zero_point[0]) * x.scale[0])
    steps = np.clip(real / y.scale[0] + y.zero_point[0], y.minimum_code, y.maximum_code)
    return float(np.abs(steps - case.values[node.outputs[0]]).max())


_NAMED = {
    "addconstrelu": "ADD_0_0",
    "c_expdiv": "ADD_0_1",
    "c_sqdiffmin": "SQUARED_DIFFERENCE_0_0",
    "c_wide": "ADD_0_2",
    "exprelu": "bounds",
    "exptanh": "TANH",
    "k_pow05": "POW_0_0",
    "k_powm2": "POW_0_0",
    "log": "LOG_0_0",
    "neg": "NEG_0_0",
    "negadd": "negative constant factor",
    "pow0": "POW_0_0",
    "pow3": "POW_0_0",
    "powvar": "POW_0_0",
    "s_sqdiff": "SQUARED_DIFFERENCE_0_0",
}


@pytest.mark.parametrize("numerics", ["exact", "nntool"])
@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_refused_files_are_refused_by_name(path: Path, numerics: str) -> None:
    graph = read_model(path).main
    if path.stem.endswith(".float"):
        rng = np.random.default_rng(0)
        samples = [rng.uniform(0.1, 2, (4, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]
        if path.stem != "powvar.float":
            graph = calibrate(graph, samples, StatisticsOptions())
    target = find_target("gap9-sq8")
    settings = parse_settings(target.settings, ["expressions=true", f"numerics={numerics}"], [])
    with pytest.raises(UnsupportedError, match=_NAMED[path.name.split(".")[0]]):
        lower(target.quantize(graph, settings), "gap9")
