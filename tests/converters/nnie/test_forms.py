"""Every form of small network that NNIE's package takes, in OpenCV and in NNIE's arithmetic (float_forms.py)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.support.float_forms import FORMS, built
from tests.support.nnie import package, quantized, run_in_opencv
from tflq.converters.nnie import NNIE
from tflq.errors import TflqError
from tflq.graph import Array, Graph
from tflq.interpreter import Engine

SAMPLES = 3
TAKEN = 318
"""How many of the forms have layers of Caffe; the others are refused."""
EMPTY = ("squeezed",)
"""Nothing is left that OpenCV could run."""
POLES = ("0.5 div", "1.0 div", "div of two", "div swapped", "div channels first behind rows")
"""1 / x near 0, which a step of 4.4 % moves far."""
FAR = {f"{o} ((3, 3), (1, 1), (1, 2), 'same', 'relu_n1_to_1')": 0.2 for o in ("conv_2d", "depthwise_conv_2d")}
"""Its clamp has four layers, which round anew."""


@cache
def _files(name: str) -> tuple[Graph, list[Array], dict[str, bytes] | str]:
    """The network, samples, and the package or why there is none."""
    graph, inputs = built(name)
    given = [x[:SAMPLES] for x in inputs]
    try:
        return graph, given, dict(package(graph, given))
    except TflqError as error:
        return graph, given, str(error)


@pytest.mark.parametrize("name", [name for name in FORMS if name not in (*EMPTY, "0.5 div")])
def test_opencv_agrees_where_it_is_taken(name: str) -> None:
    graph, given, files = _files(name)
    if not isinstance(files, str):
        wanted = Engine(graph, "float").run(given)[graph.outputs[0]]
        found = run_in_opencv(files, given)
        assert np.abs(found.reshape(wanted.shape) - wanted).max() <= 1e-3 * np.abs(wanted).max()


def test_so_many_are_taken() -> None:
    assert sum(not isinstance(_files(name)[2], str) for name in FORMS) == TAKEN


@pytest.mark.parametrize("name", [name for name in FORMS if name not in POLES])
def test_near_what_the_model_computes(name: str) -> None:
    """Quantized values are powers of 2^(1/16): a step is 4.4 %."""
    graph, given, files = _files(name)
    if not isinstance(files, str):
        made = quantized(graph, given)
        found = Engine(made, NNIE.arithmetic).run(given)[made.outputs[0]]
        wanted = Engine(graph, "float").run(given)[graph.outputs[0]]
        assert np.abs(found - wanted).max() <= FAR.get(name, 0.1) * np.abs(wanted).max()


@pytest.mark.parametrize(("axes", "count"), [((3,), 1), ((1,), 1), ((1, 2), 1), ((1, 2, 3), 2)])
def test_a_mean_has_no_more_pools_than_it_needs(axes: tuple[int, ...], count: int) -> None:
    _, _, files = _files(f"mean over {axes}, 4 axes, keeps True")
    assert not isinstance(files, str)
    (text,) = (content.decode() for key, content in files.items() if key.endswith(".prototxt"))
    assert text.count('type: "Pooling"') == count
