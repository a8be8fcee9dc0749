"""nntool.py: a script for NNTool's environment that builds what was decided here.

Source: docs/targets/gap9.md#hand-over-to-greenwaves-flow.
"""

from __future__ import annotations

import re

from tflq.converters.gap9.operators import EXPRESSION, FILTERS
from tflq.converters.gap9.passes.choose_engines import NE16
from tflq.graph import Affine, Graph, Node

Options = dict[str, object]
_FULL_WIDTH = 8

_TEXT = '''"""Quantizes {source} in NNTool as tflq did for {target}.

    PYTHONPATH=<gap_sdk>/tools/nntool python nntool.py SOURCE.tflite [FOLDER]

Take the source file, not model.tflite: ranges of activations differ there. With FOLDER, a project with AutoTiler's
model and the constants is written into it.
"""

import sys

import numpy as np

sys.path.pop(0)  # this file has the package's name
np.float, np.bool, np.int = float, bool, int  # names that NNTool uses and numpy has dropped
from nntool.api import NNGraph  # noqa: E402

GRAPH_OPTIONS = {graph_options}
NODE_OPTIONS = {node_options}


def quantized(source):
    """Return NNTool's graph of a file, quantized."""
    graph = NNGraph.load_graph(source, load_quantization=True)
    graph.adjust_order()
    graph.fusions("scaled_match_group")
{matcher}    graph.quantize(schemes=["scaled"], graph_options=GRAPH_OPTIONS, node_options=NODE_OPTIONS)
    graph.adjust_order()
    return graph


if __name__ == "__main__":
    found = quantized(sys.argv[1])
    if len(sys.argv) > 2:
        found.gen_project(directory=sys.argv[2])
'''

_MATCHER = '    graph.fusions("expression_matcher")\n'


def nntool_script(graph: Graph, target: str, source: str) -> bytes:
    """Return the script.

    Args:
        graph: quantized, for the engine and the width of each layer.
        target: name of the target.
        source: name of the model's file.
    """
    options = graph_options(graph, target)
    matches = any(node.operator == EXPRESSION for node in graph.nodes)
    shown = {
        "matcher": _MATCHER * matches,
        "graph_options": _literal(options),
        "node_options": _literal(node_options(graph, options)),
    }
    # A file may be called anything: only plain characters go into the comment.
    plain = re.sub(r"[^\w.+-]", "_", source)
    return _TEXT.format(source=plain, target=target, **shown).encode()


def graph_options(graph: Graph, target: str) -> Options:
    """Return NNTool's options for the whole graph."""
    options: Options = {"use_ne16": target == "gap9-ne16", "hwc": True, "clip_type": "none"}
    if options["use_ne16"]:
        options["weight_bits"] = _FULL_WIDTH
    wide = any(
        isinstance(t.quantization, Affine) and t.quantization.bits == 16 and not t.quantization.signed
        for t in graph.tensors
    )
    if wide:
        options.update(force_input_size=16, force_output_size=16)
    options.update(_requested(graph.nodes, ("allow_asymmetric_out",)))
    return options


def node_options(graph: Graph, options: Options) -> dict[str, Options]:
    """Return NNTool's options by outer node: the fusion's name where a layer is fused."""
    found: dict[str, Options] = {}
    for node in graph.nodes:
        chosen = _requested([node], ("softmax_out_8bits", "max_precision_limit"))
        if _decides(node) and (node.attributes.text("engine") == NE16) != options["use_ne16"]:
            chosen["use_ne16"] = not options["use_ne16"]
        if node.operator in FILTERS and node.attributes.text("engine") == NE16:
            bits = graph.tensors[node.inputs[1]].affine.bits
            if bits != _FULL_WIDTH or not options["use_ne16"]:
                chosen["weight_bits"] = bits
        if chosen:
            outer = node.attributes.text("fusion", "") or node.name.removesuffix("_merged")
            found.setdefault(outer, {}).update(chosen)
    return found


def _decides(node: Node) -> bool:
    """Whether a layer's engine was chosen: a filter's, or what a setting took off NE16."""
    taken_off = node.attributes.text("engine_reason", "") == "use_ne16 is false"
    return node.operator in FILTERS or (taken_off and "fusion" not in node.attributes)


def _requested(nodes: list[Node], keys: tuple[str, ...]) -> Options:
    """Return the options that were asked for, but for their defaults."""
    found: Options = {}
    for node in nodes:
        for text in node.attributes.text("requested", "").split():
            key, _, value = text.partition("=")
            if key in keys:
                found[key] = int(value) if key == "max_precision_limit" else value == "True"
    return found


def _literal(options: Options | dict[str, Options]) -> str:
    lines = [f"    {name!r}: {value!r}," for name, value in options.items()]
    return "{\n" + "\n".join(lines) + "\n}" if lines else "{}"
