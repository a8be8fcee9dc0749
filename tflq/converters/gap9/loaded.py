"""The graph that NNTool's loader makes of a file, which its first search for transposes sees.

Source: docs/differences/gap9.md.
"""

from __future__ import annotations

from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.passes.apply_types import apply_types
from tflq.converters.gap9.passes.choose_engines import choose_engines
from tflq.converters.gap9.passes.external_bias import fold_biases
from tflq.converters.gap9.passes.global_pools import name_global_pools
from tflq.converters.gap9.passes.separate_activations import separate_activations
from tflq.converters.gap9.types.plan import InputPlace, TypePlan, for_software, loader_types
from tflq.errors import UnsupportedError


def load_graph(editor: Gap9Editor) -> tuple[Gap9Editor, bool]:
    """Return the graph that NNTool's loader makes of a file with ranges: before fusions, for SQ8 with 8 bits.

    Returns:
        The graph, in which fused and implied activations and Quantize nodes are nodes; True if its types, and so its
        Quantize nodes, are known.
    """
    apart = Gap9Editor(editor.graph(), editor.options, editor.positive)
    separate_activations(apart)
    fold_biases(apart)
    name_global_pools(apart)
    engined, plan = _choose_types(apart)
    if plan is not None:
        apply_types(engined, plan)
    return engined, plan is not None


def loader_conversions(editor: Gap9Editor) -> frozenset[InputPlace]:
    """Return the operands upstream of which NNTool's loader puts Quantize nodes; none if its types are not known.

    Args:
        editor: Graph in which activations are nodes and nothing is fused.
    """
    plan = _choose_types(editor)[1]
    return frozenset() if plan is None else frozenset(plan.conversions)


def _choose_types(editor: Gap9Editor) -> tuple[Gap9Editor, TypePlan | None]:
    engined = Gap9Editor(editor.graph(), for_software(editor.options), editor.positive)
    choose_engines(engined)
    try:
        return engined, loader_types(engined)
    except UnsupportedError:
        return engined, None
