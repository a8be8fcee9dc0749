"""The text form of a graph: parsing returns the printed graph, malformed texts name their line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_files
from tests.support.tracked import ROOT
from tflq.api.read_model import read_model
from tflq.errors import FormatError, GraphError
from tflq.graph import Affine, Attributes, DType, Graph, Node, Tensor
from tflq.graph.parsing import parse_graph
from tflq.graph.printing import format_graph
from tflq.graph.quantization import Blockwise, FakeQuantize, Logarithmic, Quantization, Range

FILES = [*sorted((ROOT / "tflq" / "data").glob("*.tflite")), *data_files("models"), *data_files("cases", "keras")[::12]]
F32 = DType.FLOAT32


def check_round_trip(graph: Graph) -> Graph:
    """Return the parsed text; tensors are numbered in the text's order, so one parse gives the normal form."""
    parsed = parse_graph(format_graph(graph, most_inline=None))
    assert parse_graph(format_graph(parsed, most_inline=None)) == parsed
    assert [describe(parsed, node) for node in parsed.nodes] == [describe(graph, node) for node in graph.nodes]
    for ours, theirs in ((parsed.inputs, graph.inputs), (parsed.outputs, graph.outputs)):
        assert [plain(parsed, t) for t in ours] == [plain(graph, t) for t in theirs]
    return parsed


def plain(graph: Graph, t: int) -> object:
    if t < 0:
        return None
    tensor = graph.tensors[t]
    signature = tensor.shape_signature if tensor.shape_signature and -1 in tensor.shape_signature else None
    quantization: object = tensor.quantization
    if isinstance(quantization, Blockwise):
        quantization = (plain(graph, quantization.scales), quantization.block_size, quantization.block_shape)
    data = None if tensor.data is None else (tensor.data.dtype, tensor.data.tobytes())
    if tensor.data is not None and tensor.data.dtype == object:
        data = (tensor.data.dtype, b"%r" % tensor.data.tolist())
    flags = (tensor.is_variable, tensor.has_rank)
    return tensor.name, tensor.shape, tensor.dtype, quantization, tensor.range, data, signature, flags


def describe(graph: Graph, node: Node) -> object:
    tensors = [[plain(graph, t) for t in ts or ()] for ts in (node.inputs, node.outputs, node.intermediates)]
    return node.operator, node.name, tensors, node.attributes, node.version, node.custom_code, node.custom_options


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files(path: Path) -> None:
    for graph in read_model(path).graphs:
        check_round_trip(graph)


def constant_graph(tensor: Tensor) -> Graph:
    return Graph([tensor], [], (), (0,))


def constant_of(dtype: DType) -> np.ndarray:
    if dtype is DType.STRING:
        return np.array([b"", b'it\'s "so"\n', b"\xff\x00"], object)
    if dtype.storage.kind in "iu":
        bounds = np.iinfo(dtype.storage)
        return np.array([bounds.min, 0, bounds.max], dtype.storage)
    if dtype is DType.BOOL:
        return np.array([True, False, True])
    values = [0.1, -0.0, np.nan, np.inf, -np.inf, 1e-40, 65504.0]
    if dtype.storage.kind == "c":
        return np.array([complex(a, b) for a in values for b in values], dtype.storage)
    return np.array(values, dtype.storage)


@pytest.mark.parametrize("dtype", [d for d in DType if d not in (DType.RESOURCE, DType.VARIANT)], ids=lambda d: d.value)
def test_constants_of_each_type(dtype: DType) -> None:
    data = constant_of(dtype)
    empty, scalar = data[:0].reshape(0, 3), data[1:2].reshape(())
    for value in (data, data.reshape(1, -1), empty, scalar):
        graph = constant_graph(Tensor("c", value.shape, dtype, data=value))
        assert check_round_trip(graph) == graph


@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.value)
def test_inputs_of_each_type(dtype: DType) -> None:
    graph = Graph([Tensor("x", (1, 3), dtype, shape_signature=(-1, 3), has_rank=True)], [], (0,), (0,))
    assert check_round_trip(graph) == graph


S = np.array([0.1, 1e-8, 3.0], np.float32)
Z = np.array([-3, 0, 7], np.int64)


@pytest.mark.parametrize(
    "quantization",
    [
        Affine(S[:1], Z[:1]),
        Affine(S[:1].astype(np.float64), Z[:1], bits=4, signed=False, narrow_range=True),
        Affine(S, Z, 1),
        Affine(S.astype(np.float64) / 3, np.zeros(3, np.int64), 1, 16),
        Affine(S, np.zeros(1, np.int64), 1),
        Affine(S, Z[:1], 1),
        Affine(S[:1], Z[:1], 0),
        Logarithmic(1.5, 16),
        FakeQuantize(255, S[:1], S, S[:1].reshape(()), S.reshape(1, 3)),
        None,
    ],
    ids=str,
)
def test_quantizations(quantization: Quantization | None) -> None:
    for bounds in (None, Range(S[:1], S[1:2]), Range(S, S), Range(S.astype(np.float64), S[:1].astype(np.float64))):
        graph = Graph([Tensor("x", (1, 3), DType.INT8, quantization, bounds)], [], (0,), (0,))
        assert check_round_trip(graph) == graph


def test_scales_of_blocks_are_declared_before_their_weights() -> None:
    scales = Tensor("scales", (2, 2), DType.FLOAT16, data=np.ones((2, 2), np.float16))
    weights = Tensor("w", (2, 4), DType.INT4, Blockwise(1, -1, 2, (1, 2)), data=np.ones((2, 4), np.int8))
    parsed = check_round_trip(Graph([weights, scales], [], (), (0,)))
    assert parsed.tensors[parsed.outputs[0]].quantization == Blockwise(0, -1, 2, (1, 2))


@pytest.mark.parametrize(
    "name", ["", 'a"b', "it's", "a\nb", "\\", "\u00e9", "\U0001f600", "%a#1", "a#1", "1", "_", "-"]
)
def test_names(name: str) -> None:
    tensors = [Tensor(name, (), F32), Tensor(name, (), F32), Tensor("b", (), F32)]
    nodes = [
        Node("relu", (0,), (1,), Attributes({"text": name}), name),
        Node("x/custom", (1, -1), (2,), Attributes({}), "n", 3, name, b"'\"\n\x00"),
    ]
    graph = Graph(tensors, nodes, (0,), (2, 1), name)
    assert check_round_trip(graph) == graph


def test_attributes() -> None:
    values = {
        "a": True, "b": -3, "c": 1e-7, "d": float("inf"), "e": (1, 2), "f": (), "g": (0.5,), "h": b"\x00'\"", "i": None,
        "j": np.array([[1, 2]], np.int16), "k": np.array(0.5, np.float64), "l": np.zeros((0, 2), np.float32),
    }  # fmt: skip
    graph = Graph([Tensor("x", (), F32), Tensor("y", (), F32)], [Node("o", (0,), (1,), Attributes(values))], (0,), (1,))
    assert check_round_trip(graph) == graph


def test_a_node_writes_a_variable() -> None:
    tensors = [Tensor("x", (), F32), Tensor("state", (), F32, is_variable=True), Tensor("y", (), F32)]
    nodes = [Node("add", (0, 1), (2,), name="a"), Node("relu", (0,), (1,), name="b")]
    graph = Graph(tensors, nodes, (0,), (2,))
    assert parse_graph(str(graph)).nodes[1].operator == "relu"
    check_round_trip(graph)


MALFORMED = {
    "": "line 1: found the end of the line; allowed is 'graph'",
    "graph g\n": "line 1: found the end of the line; allowed is '{'",
    "graph g {\n": "line 2: found the end of the line; allowed is a tensor, an operator",
    "graph g {\n}\nx": "line 3: found 'x'; allowed is nothing after the graph",
    "graph g {\n!": "line 2: found '!'; no token starts so",
    'graph "a\n{': "line 1: found '\"a",
    'graph "\\q" {\n}': "line 1: Invalid",
    "graph g {\ninput %x int8[1]\n}": "line 2: found 'int8'; allowed is ':'",
    "graph g {\ninput %x: int9[1]\n}": "line 2: found 'int9'; allowed is a type: float16, ",
    "graph g {\ninput %x: int8[-1]\n}": "line 2: found '-1'; allowed is a size",
    "graph g {\ninput %x: int8[1] q(a, 0)\n}": "line 2: found 'a'; allowed is a number, a string, True",
    "graph g {\ninput %x: int8[1] q(1, 0, foo)\n}": "line 2: found 'foo'; allowed is axis=, bits=, unsigned or narrow",
    "graph g {\ninput %x: int8[1] q(1, 0, axis=b)\n}": "line 2: invalid literal for int",
    "graph g {\ninput %x: int8[1] foo\n}": "line 2: found 'foo'; allowed is q(...), blocks(...)",
    "graph g {\ninput %x: int8[1]\ninput %x: int8[1]\n}": "line 3: found ",
    "graph g {\ninput %x: int8[1\n}": "line 2: found the end of the line; allowed is ','",
    "graph g {\ninput x: int8[1]\n}": "line 2: found 'x'",
    "graph g {\ninput %x: int8[1]\n%y: int8[1] = relu(%x) {a=b}\n}": "line 3: found 'b'; allowed is a number, a str",
    "graph g {\n= relu()\n}": "line 2: found '='; allowed is a tensor, an operator",
    "graph g {\noutput %x\n}": "line 2: found '%x'; allowed is a tensor that an earlier line declares, or _",
    "graph g {\nconst %x: int8[1] = [300]\n}": "line 2: ",
    "graph g {\nconst %x: int8[1] = [1.5]\n}": "line 2: found the end of the line; allowed is integers for int8",
    "graph g {\nconst %x: int8[2] = [1]\n}": "allowed is values of shape (2,), not (1,)",
    "graph g {\nconst %x: int8[2, 2] = [[1, 2], [1]]\n}": "line 2: ",
    "graph g {\nconst %x: int8[1] = fill(300)\n}": "line 2: ",
    "graph g {\nconst %x: int8[1] = fill(1, 2)\n}": "line 2: ",
    "graph g {\nconst %x: int8[99] = ... #00000000\n}": "this text was printed without its long constants",
    "graph g {\nconst %x: float32[1] = [1]:foo\n}": "line 2: ",
    "graph g {\nconst %x: float32[1] = [\"a\"]\n}": "line 2: ",
    "graph g {\nrelu() version=a\n}": "line 2: found 'a'; allowed is a number, a string, True",
    "graph g {\nrelu() foo=1\n}": "line 2: found 'foo'; allowed is version, custom, options",
    "graph g {\nrelu() {a=(1, True x)}\n}": "line 2: found 'x'; allowed is ','",
    "graph g {\nrelu() {a=(\"b\")}\n}": "line 2: found '\"b\"'; allowed is a number",
    "graph g {\nrelu(%x)\n}": "line 2: found '%x'; allowed is a tensor that an earlier line declares, or _",
    "graph g {\n%y: int8[1]\n}": "line 2: found the end of the line; allowed is '='",
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MALFORMED.items())
def test_malformed_texts(text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_graph(text)
    assert str(caught.value).startswith("graph text: line ")
    assert message in str(caught.value)


def test_an_inconsistent_graph_is_refused() -> None:
    with pytest.raises(GraphError, match="found blocks of 0 elements"):
        parse_graph("graph g {\nconst %s: float32[1] = [1]\ninput %x: int8[1] blocks(%s, _, 0)\n}")


def test_scales_that_do_not_fit_are_refused() -> None:
    with pytest.raises(GraphError, match="2 scales along axis 0 do not fit"):
        parse_graph("graph g {\ninput %x: int8[3] q([0.1, 0.2], 0, axis=0)\n}\n")


def test_drawn_int4_values_stay_in_their_range() -> None:
    graph = parse_graph("graph g {\nconst %w: int4[20,30] = random(7)\n}")
    data = graph.tensors[0].data
    assert data is not None
    assert (data.dtype, data.min(), data.max()) == (np.int8, -8, 7)


def test_short_forms_of_constants() -> None:
    graph = parse_graph(
        "graph g {\n # a comment\n const %a: int8[2] = zeros # another\n const %b: float32[1,2] = fill(0.5)\n"
        " const %c: int8[64] = random(1)\n}"
    )
    a, b, c = (tensor.data for tensor in graph.tensors)
    assert a is not None
    assert b is not None
    assert c is not None
    assert (a.tolist(), a.dtype) == ([0, 0], np.int8)
    assert (b.tolist(), b.dtype) == ([[0.5, 0.5]], np.float32)
    assert c.tobytes() == np.random.default_rng(1).integers(-128, 128, 64).astype(np.int8).tobytes()
