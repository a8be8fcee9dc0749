"""The text form of a graph: it prints and parses to the same text, and names the line of what it cannot read."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from tests.support.tracked import ROOT
from tflq.errors import FormatError, GraphError
from tflq.graph import Affine, Blockwise, FakeQuantize, Graph, Logarithmic, Node, Range, Tensor
from tflq.graph.dtypes import DType
from tflq.graph.parsing import parse_graph
from tflq.graph.printing import format_graph

ONE = np.float32(0.1)


def test_the_model_inside_the_package():
    graph = tflq.read_model(ROOT / "tflq" / "data" / "digits.tflite").main
    text = format_graph(graph, most_inline=None)
    again = parse_graph(text)
    assert format_graph(again, most_inline=None) == text
    assert [n.attributes for n in again.nodes] == [n.attributes for n in graph.nodes]
    by_name = {t.name: t for t in again.tensors}
    for tensor in graph.tensors:
        twin = by_name[tensor.name]
        assert (twin.shape, twin.dtype, twin.quantisation) == (tensor.shape, tensor.dtype, tensor.quantisation)
        assert np.array_equal(twin.data, tensor.data) if tensor.data is not None else twin.data is None
    assert "... #" in str(graph)


TENSORS = (
    Tensor("q", (2, 2), DType.INT8, Affine(np.array([0.1, 0.2], np.float32), np.array([0, 0]), axis=1)),
    Tensor("zero points", (2,), DType.INT8, Affine(np.array([0.1, 0.2], np.float32), np.array([3, -4]), axis=0)),
    Tensor("double", (1,), DType.UINT8, Affine(np.array([0.1]), np.array([7]), None, 4, False, True)),
    Tensor("single", (1,), DType.INT16, Affine.per_tensor(ONE, 0, 16)),
    Tensor('quote" and\nline', (1,), DType.INT8, Logarithmic(3.5, 8)),
    Tensor("fake", (1,), DType.FLOAT32, FakeQuantize(255, *(np.array(v, np.float32) for v in (-1, 1, [-1], [[2]])))),
    Tensor("range", (1,), DType.FLOAT32, range=Range(np.array([-1.5]), np.array([np.inf]))),
    Tensor("open", (1, 4), DType.FLOAT32, shape_signature=(-1, 4), has_rank=True),
    Tensor("state", (3,), DType.FLOAT32, is_variable=True),
    Tensor("twice", (1,), DType.BOOL),
    Tensor("twice", (2,), DType.INT64),
    Tensor("", (), DType.STRING),
)


@pytest.mark.parametrize("tensor", TENSORS, ids=lambda t: repr(t.name))
def test_each_kind_of_tensor(tensor):
    graph = Graph([tensor, Tensor("twice", (1,), DType.INT8)], [], (0,), (0,), "g")
    again = parse_graph(format_graph(graph))
    assert again.tensors[0] == tensor


@pytest.mark.parametrize(
    "data",
    [
        np.array([np.nan, -np.inf, 1e-30, 0.1], np.float32),
        np.zeros((0, 3), np.int32),
        np.array(-7, np.int8),
        np.array([[True], [False]]),
        np.array([0.1, 1 / 3]),
        np.array([65504], np.float16),
        np.array([b"a\n", b"\xff"], object),
    ],
    ids=lambda data: str(data.dtype),
)
def test_each_kind_of_constant(data):
    constant = Tensor("c", data.shape, DType.of(data.dtype), data=data)
    graph = Graph([constant, Tensor("y", data.shape, constant.dtype)], [Node("neg", (0,), (1,), name="N")], (), (1,))
    assert parse_graph(format_graph(graph)).tensors[0] == constant


def test_blocks_name_their_scales():
    scales = Tensor("s", (1,), DType.FLOAT16, data=np.array([0.5], np.float16))
    weights = Tensor("w", (4,), DType.INT4, Blockwise(0, -1, 4), data=np.zeros(4, np.int8))
    graph = Graph([scales, weights, Tensor("y", (4,), DType.FLOAT32)], [Node("dequantize", (1,), (2,))], (), (2,))
    assert parse_graph(format_graph(graph)).tensors[1] == weights


def test_drawn_constants_have_the_declared_type():
    graph = parse_graph(
        "graph g {\ninput %x: float32[2]\nconst %w: int4[2,3] = random(7)\nconst %z: float32[2] = zeros\n"
        "const %f: int8[2] = fill(-3)\n%y: float32[2] = add(%x, %z)\n%v: int4[2,3] = neg(%w)\n%u: int8[2] = neg(%f)\n"
        "output %y\noutput %v\noutput %u\n}\n"
    )
    w, z, f = (t.data for t in graph.tensors[1:4])
    assert w.dtype == np.int8
    assert w.min() >= -8
    assert w.max() <= 7
    assert (z == 0).all()
    assert (f == -3).all()


X = "input %x: int8[1,4] q(0.5, -3)"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("%y: int8[1] = relu(%x)", "line 2: found '%x'; allowed is a tensor that an earlier line declares, or _"),
        (f"{X}\n{X}", "line 3: .*each tensor once; %x is declared already"),
        ("input %x: int9[1]", "line 2: found 'int9'; allowed is a type: float16"),
        ("input %x: int8[1", "line 2: found the end of the line; allowed is ','"),
        ("input %x: int8[a]", "line 2: found 'a'; allowed is a size"),
        ("input %x: int8[1] scale 0.5", "line 2: found 'scale'; allowed is q"),
        ("input %x: int8[1] q(0.5, 0, wide)", "line 2: found 'wide'; allowed is axis=, bits=, unsigned or narrow"),
        ("const %x: int8[2] = [1, 2, 3]", r"line 2: .*values of shape \(2,\), not \(3,\)"),
        ("const %x: int8[2] = ... #00000000", "line 2: .*printed without its long constants"),
        (f"{X}\n%y: int8[1] = relu(%x) {{a=b}}", "line 3: found 'b'; allowed is a number, a string"),
        (f'{X}\n%y: int8[1] = relu(%x) {{a=("b",)}}', "line 3: .*allowed is a number"),
        (f'{X}\n%y: int8[1] = relu(%x) "R" speed=2', "line 3: found 'speed'; allowed is version, custom"),
        (f"{X}\n= relu(%x)", "line 3: found '='; allowed is a tensor, an operator"),
        ("input %x: int8[1] ;", "line 2: found ';.*no token starts so"),
        ("input x: int8[1]", "line 2: found 'x'"),
    ],
)
def test_errors_name_the_line(lines, message):
    with pytest.raises(FormatError, match=message):
        parse_graph(f"graph g {{\n{lines}\n}}\n")


def test_text_after_the_graph_and_inconsistent_graphs_are_refused():
    with pytest.raises(FormatError, match="line 4: found 'more'; allowed is nothing after the graph"):
        parse_graph(f"graph g {{\n{X}\n}}\nmore\n")
    with pytest.raises(GraphError, match="2 scales along axis 0 do not fit"):
        parse_graph("graph g {\ninput %x: int8[3] q([0.1, 0.2], 0, axis=0)\n}\n")
    with pytest.raises(FormatError, match="line 2: found the end of the line; allowed is a tensor, an operator"):
        parse_graph("graph g {\n")
