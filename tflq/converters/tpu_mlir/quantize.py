"""From TFLite's graph to BM1684X's: the passes in their order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflq.converters.onnx import translate
from tflq.converters.onnx.options import OnnxOptions
from tflq.converters.passes.requirements import float_network as with_ranges
from tflq.converters.passes.requirements import refuse
from tflq.converters.settings import Options, Settings, read_options
from tflq.converters.tpu_mlir.adapt import for_the_tool
from tflq.converters.tpu_mlir.check import find_rectifier, problems_of
from tflq.converters.tpu_mlir.front_end import FRONT_END
from tflq.converters.tpu_mlir.options import Deployment, LayerOptions
from tflq.converters.tpu_mlir.passes.assemble import assemble
from tflq.converters.tpu_mlir.passes.canonical import piece_names, whole_names
from tflq.converters.tpu_mlir.passes.engines import Ranges
from tflq.converters.tpu_mlir.passes.expand import expand
from tflq.converters.tpu_mlir.passes.moves import SeenNetwork, see_network
from tflq.converters.tpu_mlir.passes.types import lines_of, lines_of_table, read_table, refuse_products, types_of
from tflq.converters.tpu_mlir.passes.unify import own_spans, spans_of
from tflq.converters.tpu_mlir.tables import CalibrationTable
from tflq.errors import OptionError
from tflq.graph import Graph, validate
from tflq.graph.rewriting import GraphEditor, graph_pass, rewrite_graph


@dataclass(frozen=True)
class TableOrigin:
    """What a quantized graph keeps for the files beside it.

    Attributes:
        table: each tensor's own range, before unification.
        deployment: what the build script says beside the integers.
    """

    table: CalibrationTable
    deployment: Deployment


def float_network(graph: Graph) -> SeenNetwork:
    """Return the float network as TPU-MLIR sees it, with the ranges that a quantization states.

    Raises:
        UnsupportedError: operators that ONNX or the target cannot take, all at once.
    """
    network = expand(with_ranges(graph))
    refuse(problems_of(network))
    return see_network(network, for_the_tool(translate(network, OnnxOptions(opset=opset_of(network)))))


def opset_of(network: Graph) -> int:
    """Return the opset to write: 13, or the first one that has all operators."""
    return 17 if any(node.operator == "layer_normalization" for node in network.nodes) else 13


def quantize_graph(graph: Graph, settings: Settings) -> Graph:
    """Return the graph that TPU-MLIR makes of a network and its ranges.

    Raises:
        UnsupportedError: operators without a mapping, all at once; tensors without a range; values without quantized
            values.
        OptionError: settings that do not fit the graph.
        InputError, FormatError: a calibration table that cannot be read.
    """
    options = read_options(LayerOptions, graph, settings)
    network, path = float_network(graph), options.whole.calibration_table
    return quantize_network(network, read_table(path, network.names) if path else None, options)


def quantize_network(network: SeenNetwork, table: CalibrationTable | None, options: Options[LayerOptions]) -> Graph:
    """Return the quantized graph of a float network.

    Args:
        network: float32, with ranges where there is no table.
        table: the ranges; None for those of the network.
        options: of the target.

    Raises:
        UnsupportedError, OptionError: as `quantize_graph`.
    """
    _refuse_modes_of_fused(network.graph, options)
    fused = rewrite_graph(network.graph, FRONT_END, owner="tpu-mlir")
    network = replace(network, names=piece_names(fused, network.names))
    names, cores = network.names, {**network.cores, **whole_names(fused, network.names)}
    own = lines_of(fused, names) if table is None else lines_of_table(fused, names, cores, table)
    spans = spans_of(fused, own, options.whole.asymmetric, network.moves)
    refuse_products(fused, spans, options)
    types = types_of(fused, spans, options.whole)
    assembled = graph_pass(
        "assemble",
        lambda graph: assemble(
            graph, Ranges(network, own_spans(fused, own, options.whole.asymmetric), spans, types), options
        ),
        "layers compute in their types; a conversion follows where two types meet",
        "docs/rules/tpu_mlir_operators.md#elementwise-operators",
    )
    result = rewrite_graph(fused, [assembled], owner="tpu-mlir-assemble")
    validate(result, "tpu-mlir graph")
    inside = (replace(own[t], name=name) for t, name in cores.items() if t in own)
    pieces = whole_names(fused, names)
    lines = {line.name: line for line in (*(line for t, line in own.items() if t not in pieces), *inside)}
    return replace(result, extra=TableOrigin(CalibrationTable(tuple(lines.values())), options.whole.deployment()))


def _refuse_modes_of_fused(network: Graph, options: Options[LayerOptions]) -> None:
    """A fused rectifier has no mode of its own: it must be that of its layer."""
    editor = GraphEditor(network)
    for node in network.nodes:
        rectifier = find_rectifier(editor, node)
        if rectifier is None:
            continue
        modes = [options.of(n.name).mode for n in (node, rectifier)]
        if modes[0] != modes[1]:
            where = network.where(network.nodes.index(rectifier))
            raise OptionError(
                f"{where}: mode={modes[1]}, but it is fused into {node.name}, which has mode={modes[0]}; set the same "
                f"for both"
            )
