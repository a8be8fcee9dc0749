"""LSTM without an axis of time against TFLite: int8, hybrid and float32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings
from tests.support.lstm import Lstm, lstm_graph, lstms
from tests.support.single_op import check_stream, random_inputs
from tflq.errors import UnsupportedError
from tflq.interpreter import lower


@pytest.mark.parametrize("kind", ["int8", "hybrid", "float"])
@kernel_settings
@given(how=lstms(), asymmetric=st.booleans())
def test_against_tflite(oracle, kind, how, asymmetric):
    """Cells fill whole registers, so that float gates do not depend on the host's libm."""
    cells = -(-how.cells // 4) * 4
    how = replace(how, cells=cells, outputs=how.outputs if how.projection else cells, steps=0)
    changes = {"asymmetric_quantize_inputs": asymmetric} if kind == "hybrid" else {}
    graph = lstm_graph("lstm", replace(how, time_major=False), kind, **changes)
    check_stream(oracle, graph, random_inputs(np.random.default_rng(how.seed), graph, 5))


def test_the_basic_cell_is_refused():
    graph = lstm_graph("lstm", Lstm(steps=0), "float", kernel_type="basic")
    with pytest.raises(UnsupportedError, match="takes 'full' only"):
        lower(graph)
