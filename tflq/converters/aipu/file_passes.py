"""Rewrites of a TFLite graph that the Compass Parser does before operators become layers.

Source: Compass Parser, front_end/lite/buffer.py, load.py, passes/front_passes.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.aipu.faults import PARSER_FAULTS
from tflq.converters.aipu.stated_ranges import inherit
from tflq.converters.calibration.ranges import range_of
from tflq.converters.passes.rewrite import with_attributes
from tflq.errors import TflqError
from tflq.graph import Array, Graph, Node
from tflq.graph.operators import Trait, has_trait
from tflq.graph.rewriting import fused_activation
from tflq.interpreter.execution.settle import settle
from tflq.quoting import compass_name

_ACTIVATION = "fused_activation_function"
_LIMITS = {"relu": np.inf, "relu6": 6.0}
"""End of the name of a tensor -> the greatest value."""


def fold_constants(source: Graph) -> dict[int, Array]:
    """Return the results that no input changes, by tensor, which the Parser makes Constant layers of."""
    try:
        found = settle(source).graph.tensors
    except TflqError:
        return {}
    pairs = enumerate(zip(source.tensors, found, strict=True))
    return {t: true.data for t, (old, true) in pairs if true.data is not None and old.data is None}


def _activation_in(name: str) -> str:
    """Return the activation at the end of a name, relu or relu6, in any case of letters; empty if there is none."""
    return next((activation for activation in _LIMITS if name.lower().endswith(activation)), "")


def rectify_by_name(source: Graph, faults: bool = False) -> Graph:
    """Return the graph with activations and ranges that names of tensors with ranges tell, in any case of letters.

    A layer without an activation and with a result called ...RELU or ...RELU6 ends in that activation. Its range
    begins at 0, and of RELU6 ends at 6 at most. Files of quantization-aware training name it by the name only.

    Args:
        source: float, with ranges.
        faults: True to do so against the stated range too: one that begins below 0, or ends half a step of 8 bits or
            more above 6. If the file has the activation, the range is cut in any case.

    Source: Compass Parser, front_end/lite/buffer.py, get_act_info_from_tensor.
    """
    result = source.copy()
    for index, node in enumerate(source.nodes):
        tensor = source.tensors[node.outputs[0]]
        named = _activation_in(tensor.name)
        if not named or tensor.range is None or _ACTIVATION not in node.attributes:
            continue
        low, high, limit = float(tensor.range.minimum.min()), float(tensor.range.maximum.max()), _LIMITS[named]
        told = fused_activation(node)
        if told == "none" and (faults or (low >= 0 and high - limit < (high - low) / 510)):
            told = named
            result.nodes[index] = with_attributes(node, **{_ACTIVATION: named})
        if faults or told == named:
            result.tensors[node.outputs[0]] = replace(tensor, range=range_of(max(low, 0.0), min(high, limit)))
    return result


def name_cut_ranges(source: Graph) -> dict[str, str]:
    """Return the layers of a quantized file with a range that the Parser cuts at 0 because of their name.

    Example: LEAKY_RELU with a tensor called `leaky_re_lu/LeakyRelu`.
    """
    return dict.fromkeys((compass_name(source.tensors[t].name) for t in _cut_by_name(source)), _CUT)


_CUT = (
    "keeps its range below 0; the Parser begins the range of a tensor at 0 if its name ends in RELU, so that negative "
    f"results are lost: rename the tensor; {PARSER_FAULTS}=true gives its files"
)


def _cut_by_name(source: Graph) -> list[int]:
    """Return results below 0 of operators without a fused activation, with a name that ends in RELU or RELU6."""
    free = (node.outputs[0] for node in source.nodes if _ACTIVATION not in node.attributes)
    named = [t for t in free if _activation_in(source.tensors[t].name)]
    ranges = [(t, source.tensors[t].range) for t in named]
    return [t for t, stated in ranges if stated is not None and stated.minimum.min() < 0]


def cut_ranges(source: Graph) -> Graph:
    """Return a quantized file with the ranges that the Parser cuts because of names (lite/buffer.py)."""
    result = source.copy()
    for t in _cut_by_name(source):
        stated = source.tensors[t].range
        assert stated is not None
        limit = _LIMITS[_activation_in(source.tensors[t].name)]
        cut = replace(range_of(0.0, min(float(stated.maximum.max()), limit)), statistics=stated.statistics)
        result.tensors[t] = replace(source.tensors[t], range=cut)
    return result


def split_activations(source: Graph, is_quantized: bool = False) -> Graph:
    """Return the graph with every fused activation as a node of its own.

    The layer keeps the name of the output; the activation has its own name after it: `<output>_RELU`. The result of the
    layer has the range of its activation. Of a quantized file only the activation states it.
    """
    result = source.copy()
    result.nodes = []
    for node in source.nodes:
        activation = fused_activation(node)
        if activation == "none" or has_trait(node, Trait.RECURRENT):
            result.nodes.append(node)
            continue
        (t,) = node.outputs
        written = source.tensors[t]
        inner = result.add_tensor(inherit(written) if is_quantized else written)
        result.tensors[t] = replace(written, name=f"{written.name}_{activation.upper()}")
        result.nodes.append(replace(with_attributes(node, fused_activation_function="none"), outputs=(inner,)))
        result.nodes.append(Node(activation, (inner,), (t,), name=node.name))
    return result
