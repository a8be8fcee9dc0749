"""batch=dynamic, operator by operator: any number of samples, or a refusal that names what holds the batch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.onnx_run import run_onnx
from tests.support.open_batches import REFUSED, TAKEN, open_graph, samples
from tflq.converters.onnx import ONNX
from tflq.converters.settings import parse_settings
from tflq.errors import UnsupportedError
from tflq.graph import Graph, Model


def written(graph: Graph, batch: str) -> bytes:
    made = ONNX.quantize(graph, parse_settings(ONNX.settings, [f"batch={batch}"]))
    (data,) = ONNX.emit(made, Model([graph])).values()
    return data


@pytest.mark.parametrize("name", TAKEN)
def test_one_operator_takes_any_number_of_samples(name: str) -> None:
    graph, x = open_graph(TAKEN[name]), samples()
    (once,) = run_onnx(written(graph, "static"), [x])
    (many,) = run_onnx(written(graph, "dynamic"), [x.reshape(1, -1, *x.shape[2:])])
    assert np.allclose(once.reshape(-1, *once.shape[2:]), many[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", REFUSED)
def test_one_operator_that_holds_the_batch(name: str) -> None:
    graph = open_graph(REFUSED[name])
    assert written(graph, "static")
    with pytest.raises(UnsupportedError, match=r"^batch=dynamic: "):
        written(graph, "dynamic")
    assert len(ONNX.check(graph, parse_settings(ONNX.settings, ["batch=dynamic"]))) == 1
