"""What `tflq convert` prints of the layers, the files and how close they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tflq.cli import output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tflq.analysis.emitted import EmittedDifference
    from tflq.analysis.similarity import Similarities, Similarity
    from tflq.graph import Graph, Node


@dataclass(frozen=True)
class Converted:
    """What a conversion gave.

    Attributes:
        model: path.
        target: name.
        folder: where the files are.
        graph: the target's, lowered.
        artefacts: name -> content.
        compared: the emitted .tflite against the target; None without one, or why it was not compared.
        measured: each layer against floating point, or why that was not measured.
    """

    model: str
    target: str
    folder: Path
    graph: Graph
    artefacts: Mapping[str, bytes]
    compared: EmittedDifference | str | None
    measured: Similarities | str


def sentence(compared: EmittedDifference | str | None) -> str:
    """Say in words how far the emitted .tflite is from the target."""
    if compared is None:
        return "the target writes no .tflite"
    if isinstance(compared, str):
        return f"the .tflite was not compared: {compared}"
    found = compared.output
    return (
        f"the .tflite in TFLite against the target's arithmetic: {found.differing} of {found.elements} output elements "
        f"differ, by {output.number(found.largest_lsb)} LSB at most ({compared.samples} samples, {compared.identity})"
    )


def print_conversion(converted: Converted) -> None:
    """Print the table of layers, the files, and how close they are to TFLite and to floating point."""
    graph, compared, measured = converted.graph, converted.compared, converted.measured
    output.line(f"{converted.target}: {len(graph.nodes)} operators")
    rows = [_layer(graph, number, node, compared, measured) for number, node in enumerate(graph.nodes)]
    columns = ("#", "operator", "layer", "engine", "weights", "output", "cosine", "requantised")
    output.table((*columns, "TFLite, LSB", "reason"), rows, right=("#", "cosine", "requantised", "TFLite, LSB"))
    output.line()
    for name, data in converted.artefacts.items():
        output.line(f"{converted.folder / name}: {output.size(len(data))}")
    output.line(sentence(compared))
    output.line(closeness(measured))


def closeness(measured: Similarities | str) -> str:
    """Say in words how the columns cosine and requantised were measured."""
    if isinstance(measured, str):
        return f"layers were not compared with floating point: {measured}"
    return (
        f"cosine: of each layer's float result and the target's, {measured.samples} samples; requantised: codes of the "
        f"float result that differ from the target's, and the largest difference"
    )


def _layer(
    graph: Graph, number: int, node: Node, compared: EmittedDifference | str | None, measured: Similarities | str
) -> tuple[str, ...]:
    facts = _facts(graph, node)
    outputs = ", ".join(
        f"{graph.tensors[t].dtype.value}[{','.join(map(str, graph.tensors[t].shape))}]" for t in node.outputs
    )
    bits = facts["weight_bits"]
    return (
        str(number),
        node.operator,
        node.name,
        str(facts["engine"] or ""),
        f"{bits} bits" if bits else "",
        outputs,
        *_similarity_cells(_similarity(node, measured)),
        _largest_lsb(node, compared),
        str(facts["reason"] or ""),
    )


def _similarity(node: Node, measured: Similarities | str) -> Similarity | None:
    """Return the figures of a node's output, of several the farthest; None where none was measured."""
    if isinstance(measured, str):
        return None
    return min((s for s in measured.tensors if s.tensor in node.outputs), key=lambda s: s.cosine, default=None)


def _similarity_cells(found: Similarity | None) -> tuple[str, str]:
    if found is None:
        return "", ""
    codes = "" if math.isnan(found.differing) else f"{100 * found.differing:.2f}%, {output.number(found.largest)}"
    return f"{found.cosine:.6f}", codes


def figures_of(measured: Similarities | str) -> dict[str, dict[str, float]]:
    """Return name of a model's tensor -> its figures."""
    return {} if isinstance(measured, str) else {s.source: _figures(s) for s in measured.tensors}


def _similarity_report(found: Similarity | None) -> output.Json:
    return None if found is None else _figures(found)


def _figures(found: Similarity) -> dict[str, float]:
    return {
        "cosine": found.cosine,
        "requantised_cosine": found.code_cosine,
        "requantised_differing": found.differing,
        "requantised_largest": found.largest,
    }


def _largest_lsb(node: Node, compared: EmittedDifference | str | None) -> str:
    """Return how far TFLite's result of the emitted model is from this node's; empty where it has none."""
    if compared is None or isinstance(compared, str):
        return ""
    found = [compared.tensors[t].largest_lsb for t in node.outputs if t in compared.tensors]
    return output.number(max(found)) if found else ""


def _facts(graph: Graph, node: Node) -> dict[str, output.Json]:
    """Return what the target put down on the node: its engine, why, and the width of the weights."""
    from tflq.graph import ABSENT, Affine, Logarithmic

    weights = graph.tensors[node.inputs[1]] if len(node.inputs) > 1 and node.inputs[1] != ABSENT else None
    affine = weights.quantisation if weights is not None and weights.is_constant else None
    return {
        "engine": node.attributes.text("engine", ""),
        "reason": node.attributes.text("engine_reason", ""),
        "weight_bits": affine.bits if isinstance(affine, (Affine, Logarithmic)) else None,
    }


def conversion_report(converted: Converted) -> dict[str, output.Json]:
    """Return the report of --json."""
    graph, measured = converted.graph, converted.measured
    return {
        "model": converted.model,
        "target": converted.target,
        "layers": [_layer_report(graph, i, node, measured) for i, node in enumerate(graph.nodes)],
        "files": {str(converted.folder / name): len(data) for name, data in converted.artefacts.items()},
        "emitted_tflite": compared_report(converted.compared),
        "similarity": measured if isinstance(measured, str) else {"samples": measured.samples},
    }


def _layer_report(graph: Graph, number: int, node: Node, measured: Similarities | str) -> dict[str, output.Json]:
    figures = _similarity_report(_similarity(node, measured))
    return {"index": number, "operator": node.operator, "name": node.name, **_facts(graph, node), "similarity": figures}


def compared_report(compared: EmittedDifference | str | None) -> output.Json:
    """Return the comparison as JSON: an object, null without a .tflite, or the words why it could not be done."""
    if compared is None or isinstance(compared, str):
        return compared
    return {
        "oracle": str(compared.identity),
        "samples": compared.samples,
        "elements": compared.output.elements,
        "differing": compared.output.differing,
        "largest_lsb": compared.output.largest_lsb,
        "tensors": {
            str(t): {"differing": s.differing, "largest_lsb": s.largest_lsb} for t, s in compared.tensors.items()
        },
    }
