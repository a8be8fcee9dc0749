"""An option that a graph does not state has the value that TFLite's file format gives it."""

from __future__ import annotations

import re

import pytest

from tests.support.exchange import cells, differs_by_default
from tflq.converters.onnx import ONNX, supported_operators
from tflq.converters.settings import parse_settings
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, GraphBuilder

SETTINGS = parse_settings(ONNX.settings)


def test_options_that_are_not_stated() -> None:
    entries = cells(supported_operators(), ("float32", "int32", "bool"))
    found = [differs_by_default(entry, ONNX, lambda graph: ONNX.quantize(graph, SETTINGS)) for entry in entries]
    assert [words for several in found for words in several] == []


@pytest.mark.parametrize("operator", ["depth_to_space", "space_to_depth"])
@pytest.mark.parametrize(("block", "is_taken"), [(-1, False), (0, False), (1, True), (2, True), (3, False)])
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.INT32])
def test_blocks_that_divide(operator: str, block: int, is_taken: bool, dtype: DType) -> None:
    b, side = GraphBuilder("blocks"), max(block, 1)
    wide, deep = (1, 2 * side, 2 * side, 8 // side**2), (1, 2 // side, 2 // side, 8 * side**2)
    shape = wide if operator == "depth_to_space" else deep
    graph = b.build([b.add(operator, [b.input("x", (1, 2, 2, 8), dtype)], shape, dtype, block_size=block)])
    if is_taken:
        ONNX.quantize(graph, SETTINGS)
    else:
        with pytest.raises((GraphError, UnsupportedError), match=re.escape(f"blocks of {block}")):
            ONNX.quantize(graph, SETTINGS)
