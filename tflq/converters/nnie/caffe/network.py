"""Walks a graph and makes its Caffe layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace

from tflq.converters.mappings import find_rule
from tflq.converters.nnie.caffe import elementwise, moves, windows
from tflq.converters.nnie.caffe.layer import RECTIFIERS, CaffeLayer, Site, image_of
from tflq.converters.onnx.model import plain_name
from tflq.converters.passes.patterns import shape_first
from tflq.converters.passes.requirements import no_mapping
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import ABSENT, Graph, Node
from tflq.graph.operators import RESHAPES
from tflq.quoting import Names

_BUILDERS: dict[str, Callable[[Site], list[CaffeLayer]]] = {
    **{name: elementwise.eltwise(name) for name in ("add", "sub", "mul", "div")},
    **dict.fromkeys(RECTIFIERS, elementwise.rectifier),
    **dict.fromkeys(RESHAPES, moves.reshape),
    **dict.fromkeys(("slice", "strided_slice"), moves.part),
    **dict.fromkeys(("split", "split_v"), moves.split),
    "abs": elementwise.plain("AbsVal"),
    "average_pool_2d": windows.average_pool,
    "concatenation": elementwise.concatenation,
    "conv_2d": windows.convolution,
    "depthwise_conv_2d": windows.depthwise,
    "elu": elementwise.plain("ELU"),
    "exp": elementwise.plain("Exp"),
    "fully_connected": windows.fully_connected,
    "hard_swish": elementwise.hard_swish,
    "leaky_relu": elementwise.leaky,
    "logistic": elementwise.plain("Sigmoid"),
    "max_pool_2d": windows.max_pool,
    "maximum": elementwise.eltwise("max"),
    "mean": windows.reduced("AVE"),
    "minimum": elementwise.eltwise("min"),
    "neg": elementwise.power(scale=-1),
    "pow": elementwise.raised,
    "prelu": elementwise.prelu,
    "reduce_max": windows.reduced("MAX"),
    "reduce_min": windows.reduced("MAX", is_least=True),
    "resize_nearest_neighbor": windows.upsample,
    "rsqrt": elementwise.power(power=-0.5),
    "softmax": elementwise.softmax,
    "sqrt": elementwise.power(power=0.5),
    "square": elementwise.power(power=2),
    "squared_difference": elementwise.squared_difference,
    "sum": windows.reduced("AVE", is_sum=True),
    "tanh": elementwise.plain("TanH"),
    "tile": moves.tile,
    "transpose": moves.transpose,
    "transpose_conv": windows.deconvolution,
}


@dataclass(frozen=True)
class LayerRule:
    """How an operator of another package becomes layers.

    Attributes:
        build: Returns the Caffe layers of a node.
        quantizes: Whether the inputs become logarithmic quantized values, for a kernel of arithmetic `nnie`.
    """

    build: Callable[[Site], list[CaffeLayer]]
    quantizes: bool = False


def rule_of(node: Node) -> LayerRule | None:
    """Return the rule that another package has for a node; None if there is none."""
    return None if node.operator in _BUILDERS else find_rule("nnie", node, LayerRule)


_ON_ROWS = (*RECTIFIERS, "abs", "elu", "exp", "leaky_relu", "logistic", "neg", "pow", "rsqrt", "sqrt", "square", "tanh")
"""Operators whose layers take a blob of 2 axes as they take one of 4."""


def supported_operators() -> tuple[str, ...]:
    """Return the operators that have a layer, all or in part."""
    return tuple(sorted(_BUILDERS))


@dataclass(frozen=True)
class CaffeNetwork:
    """A graph in Caffe.

    Attributes:
        layers: in order of execution; Input layers first.
        blobs: tensor -> the blob that holds it.
        problems: node -> why it has no layer.
        names: a node's name -> its layer's.
    """

    layers: tuple[CaffeLayer, ...]
    blobs: dict[int, str]
    problems: dict[int, str]
    names: dict[str, str]


def caffe_network(graph: Graph, suffixes: dict[str, str] | None = None) -> CaffeNetwork:
    """Return the network of a graph of real numbers.

    Args:
        graph: Result of `prepare`, or quantized for NNIE.
        suffixes: node name -> what to put behind its layer's name.
    """
    walk = _Walk(graph)
    for index, node in enumerate(graph.nodes):
        try:
            walk.add(node, (suffixes or {}).get(node.name, ""))
        except (UnsupportedError, GraphError) as error:
            walk.problems[index] = str(error)
    return CaffeNetwork(tuple(walk.layers), walk.blobs, walk.problems, walk.layer_names)


class _Walk:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.readers = graph.consumers()
        first = graph.tensors[graph.inputs[0]].shape if graph.inputs else ()
        self.batch = first[0] if first else 1
        self.layers: list[CaffeLayer] = []
        self.blobs: dict[int, str] = {}
        self.problems: dict[int, str] = {}
        self.names = Names()
        self.layer_names: dict[str, str] = {}
        # Tensor -> the map that its InnerProducts flatten by themselves.
        self.source: dict[int, int] = {}
        # Tensors whose blob has 2 axes, as an InnerProduct writes it; all others have 4.
        self.rows: set[int] = set()
        for number, t in enumerate(graph.inputs):
            name = self.names.fresh("data" if len(graph.inputs) == 1 else f"data{number}")
            self.blobs[t] = name
            stated = graph.tensors[t].shape
            try:
                shape = {"shape": {"dim": caffe_shape(stated)}}
            except UnsupportedError as error:
                raise UnsupportedError(f"input '{graph.tensors[t].name}': {error}") from None
            if stated[0] != self.batch:
                words = f"{stated} has {stated[0]} samples; the first input has {self.batch}"
                raise UnsupportedError(f"input '{graph.tensors[t].name}': {words}")
            self.layers.append(CaffeLayer(name, "Input", (), (name,), {"input_param": shape}))

    def add(self, node: Node, suffix: str) -> None:
        """Add a node's layers.

        Raises:
            UnsupportedError: it has none.
        """
        name = self.names.fresh(layer_name(self.graph, node))
        self.layer_names[node.name] = name + suffix
        for number, t in enumerate(node.outputs):
            self.blobs[t] = name if number == 0 else f"{name}_{number}"
        rule = rule_of(node)
        if rule is None and node.operator not in _BUILDERS:
            raise UnsupportedError(no_mapping(node, "no layer of Caffe 1.0 in NNIE's package"))
        computed = tuple(t for t in node.inputs if t != ABSENT and not self.graph.tensors[t].is_constant)
        if not computed:
            raise UnsupportedError("all operands are constants; fold it")
        if node.operator in RESHAPES and self._is_free(node, computed[0]):
            return
        if node.operator != "fully_connected":
            self._as_images(node, computed)
        elif computed[0] in self.source:
            computed = (self.source[computed[0]], *computed[1:])
        bottoms = tuple(self.blobs[t] for t in computed)
        site = Site(self.graph, node, name + suffix, bottoms, computed, self.blobs[node.outputs[0]], self.batch)
        made = rule.build(site) if rule else _BUILDERS[node.operator](site)
        self.layers += self._with_own_names(made, {site.name, *(self.blobs[t] for t in node.outputs)})
        if made[0].type == "InnerProduct" or all(t in self.rows for t in computed):
            self.rows.update(node.outputs)

    def _with_own_names(self, made: Sequence[CaffeLayer], kept: Set[str]) -> list[CaffeLayer]:
        """Return a node's layers; names that it made up inside become names that no other layer or blob has."""
        wanted = [name for layer in made for name in (layer.name, *layer.tops) if name not in kept]
        fresh = {name: self.names.fresh(name) for name in dict.fromkeys(wanted)}

        def own(names: Sequence[str]) -> tuple[str, ...]:
            return tuple(fresh.get(name, name) for name in names)

        return [replace(x, name=own((x.name,))[0], bottoms=own(x.bottoms), tops=own(x.tops)) for x in made]

    def _is_free(self, node: Node, t: int) -> bool:
        """Whether a reshape needs no layer: an InnerProduct flattens by itself, or the blob is the same."""
        output = node.outputs[0]
        before, after = self.graph.tensors[t].shape, self.graph.tensors[output].shape
        readers = [self.graph.nodes[i] for i in self.readers.get(output, [])]
        depth = {self.graph.tensors[n.inputs[1]].shape[1:] for n in readers if n.operator == "fully_connected"}
        products = all(n.operator == "fully_connected" and n.inputs[0] == output for n in readers)
        if readers and products and len(after) == 2 and depth == {after[1:]} and after[0] == self.batch:
            self.source[output], self.blobs[output] = t, self.blobs[t]
            return output not in self.graph.outputs
        if image_of(before, self.batch) != image_of(after, self.batch):
            return False
        self.blobs[output] = self.blobs[t]
        if t in self.rows:
            self.rows.add(output)
        return True

    def _as_images(self, node: Node, computed: tuple[int, ...]) -> None:
        """Give blobs of 2 axes 4 where the layer needs them, or where another operand has 4."""
        among = [t for t in computed if t in self.rows]
        if not among or (len(among) == len(computed) and self._takes_rows(node)):
            return
        for t in dict.fromkeys(among):
            name = self.names.fresh(f"{self.blobs[t]}_image")
            _, h, w, c = image_of(self.graph.tensors[t].shape, self.batch)
            _, fields, _ = moves.shape_step(c, h, w)
            self.layers.append(CaffeLayer(name, "Reshape", (self.blobs[t],), (name,), fields))
            self.blobs[t] = name
            self.rows.discard(t)

    def _takes_rows(self, node: Node) -> bool:
        return node.operator in (
            *_ON_ROWS,
            "add",
            "sub",
            "mul",
            "div",
            "maximum",
            "minimum",
            "concatenation",
            "softmax",
        )


def layer_name(graph: Graph, node: Node) -> str:
    """Return the name of a node's layer: the first name of the tensor that it writes, without its output number."""
    if not node.outputs:  # it writes a variable, or runs another subgraph for what that does
        return plain_name(node.name, 0)
    t = node.outputs[0]
    return plain_name(graph.tensors[t].name, t)


def caffe_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return an input's shape as Caffe has it: [N, H, W, C] becomes [N, C, H, W]; others the images that they are.

    Raises:
        UnsupportedError: no axis, or more than 4.
    """
    return shape_first(image_of(shape, shape[0] if shape else 1))
