"""Ranges from a file: both forms, and each mistake with its line."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.refused import refuses
from tflq.converters.calibration import parse_ranges, with_ranges
from tflq.errors import InputError
from tflq.graph import DType, Graph, GraphBuilder


def graph() -> Graph:
    b = GraphBuilder()
    x = b.input("in", (1, 4), DType.FLOAT32)
    c = b.constant("weights", np.ones((1, 4), np.float32))
    y = b.tensor("a;b,c", (1, 4), DType.FLOAT32)
    b.node("add", [x, c], [y], fused_activation_function="none")
    return b.build([y])


@pytest.mark.parametrize(
    "text",
    [
        """{"model_qsvs": {"in": {"min": [[-1.0]], "max": [[2.5]], "num_samples": 1},
            "a;b,c": {"min": [[0]], "max": 3}}, "metadata": {"num_samples_calibrated": 1}}""",
        'tensor,min,max\n# hand-set\nin,-1,2.5\n\n"a;b,c",0,3\n',
        '{"in": [-1, 2.5],\n "a;b,c": [0, 3]}',
    ],
)
def test_both_forms(text: str) -> None:
    found = with_ranges(graph(), parse_ranges(text, "f"), "f")
    named = {t.name: t.range for t in found.tensors}
    assert named["in"] is not None
    assert named["a;b,c"] is not None
    assert named["weights"] is None
    assert (named["in"].minimum[0], named["in"].maximum[0]) == (-1, 2.5)
    assert named["a;b,c"].maximum.dtype == np.float32


test_mistakes = refuses(
    lambda text: with_ranges(graph(), parse_ranges(text, "f"), "f"),
    InputError,
    {
        "in,-1,2\nnobody,0,1": "f, line 2: the model has no tensor 'nobody'",
        "in,-1\n": "f, line 1: found 2 fields; allowed are 3",
        "# c\nin,-1,2,3\n": "f, line 2: found 4 fields",
        "in,2,-1": "f, line 1: tensor 'in' has minimum 2 above maximum -1",
        "in,-1,inf": "f, line 1: found 'inf'; allowed is a finite number",
        "in,a,1": "f, line 1: found 'a'",
        "in,0,1\nin,0,2": "f, line 2: tensor 'in' was given already in line 1",
        "weights,0,1": "f, line 1: tensor 'weights' is a constant",
        '{"in": [0, 1],\n"nobody": [0, 1]}': "f, line 2: the model has no tensor 'nobody'",
        '{"in": [0]}': "f, line 1: found 2 fields",
        '{"in": [0, 1],\n': "f, line 2: no JSON",
    },
)


def test_statistics_of_a_saved_calibration() -> None:
    text = '{"model_qsvs": {"in": {"min": [[-1]], "max": [[2]], "mu2": [1, 2, 3, 4.5]}}}'
    found = with_ranges(graph(), parse_ranges(text, "f"), "f").tensors[0].range
    assert found is not None
    assert found.statistics["mu2"].tolist() == [1, 2, 3, 4.5]
    assert not parse_ranges('{"model_qsvs": {}}', "f")
    with pytest.raises(InputError, match="f: mu2 of tensor 'in': allowed are nested lists"):
        parse_ranges(text.replace("4.5", '"x"'), "f")
    with pytest.raises(InputError, match="nested lists of equal length"):
        parse_ranges(text.replace("4.5", "[1]"), "f")


def test_an_internal_tensor_takes_a_range() -> None:
    """Values that a layer quantizes within itself stand in no input and no output."""
    b = GraphBuilder()
    x = b.input("in", (1, 4), DType.FLOAT32)
    y, inner = (b.tensor(name, (1, 4), DType.FLOAT32) for name in ("out", "layer/square_sum"))
    b.node("lrn", [x], [y], intermediates=(inner,))
    found = with_ranges(b.build([y]), parse_ranges("layer/square_sum,0,2.5\n", "f"), "f").tensors[inner]
    assert found.range is not None
    assert (found.range.minimum[0], found.range.maximum[0]) == (0, 2.5)
