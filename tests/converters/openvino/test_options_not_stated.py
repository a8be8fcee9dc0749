"""An option that a graph does not state has the value that TFLite's file format gives it."""

from __future__ import annotations

from tests.support.exchange import cells, differs_by_default
from tflq.converters.openvino import OPENVINO
from tflq.converters.openvino.emit import supported_operators
from tflq.converters.settings import parse_settings


def test_options_that_are_not_stated() -> None:
    settings = parse_settings(OPENVINO.settings, ["precision=float"])
    entries = cells(supported_operators(), ("float32", "int32", "bool"))
    found = [differs_by_default(entry, OPENVINO, lambda graph: OPENVINO.quantize(graph, settings)) for entry in entries]
    assert [words for several in found for words in several] == []
