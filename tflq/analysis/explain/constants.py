"""Explains one number of a constant: what the file holds, what it stands for, what the graph that runs made of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.analysis.executions import real_values
from tflq.analysis.explain.explanation import Explanation, place_of
from tflq.analysis.explain.steps import Step
from tflq.graph import Affine, Graph, Tensor


def explain_constant(source: Graph, t: int, index: Sequence[int], graph: Graph, sample: int = 0) -> Explanation:
    """Return the steps of a constant of the model: stored value, scale, zero point, real number; and those of a target.

    Args:
        source: the model's own graph.
        t: the constant in it.
        index: position in its own axes.
        graph: that runs; where it is another one, the constant of that name in it is shown, too.
        sample: its number, for the report.

    Raises:
        OptionError: the index lies outside.
    """
    tensor = source.tensors[t]
    data = np.asarray(tensor.data)
    place = place_of(tensor.name, data.shape, index)
    readers = [n for n in graph.nodes if any(graph.tensors[i].name == tensor.name for i in n.inputs if i >= 0)]
    steps = _steps("in the file", tensor, place)
    made = next((x for x in graph.tensors if x.name == tensor.name and x.data is not None), None)
    if graph is not source and made is not None and made.data is not None:
        own = np.asarray(made.data)
        if own.shape == data.shape:
            steps += _steps("of the target", made, place)
        else:
            steps.append(
                Step("shape of the target", f"stored as {list(own.shape)}, another order of the axes", own.size)
            )
    elif graph is not source:
        words = "the target's graph has no constant of this name: it is folded into others"
        steps.append(Step("value of the target", words, steps[0].value))
    last = steps[-1]
    return Explanation(
        tensor.name,
        place,
        sample,
        readers[0].name if readers else "",
        "constant",
        readers[0].arithmetic or "" if readers else "",
        "the file" if graph is source else "the file, and what the target's quantiser made of it",
        tuple(steps),
        last.value,
        None if last.label.startswith("real") or not isinstance(last.value, (int, float)) else float(last.value),
    )


def _steps(whose: str, tensor: Tensor, place: tuple[int, ...]) -> list[Step]:
    data = np.asarray(tensor.data)
    value = data[place].item()
    found = [Step(f"value {whose}", f"{tensor.dtype.value}, of '{tensor.name}'", value)]
    affine = tensor.quantisation
    if isinstance(affine, Affine) and tensor.dtype.is_integer:
        channel = 0 if affine.axis is None or affine.scale.size == 1 else place[affine.axis]
        zero = int(affine.zero_point[channel if affine.zero_point.size > 1 else 0])
        scale = float(affine.scale[channel if affine.scale.size > 1 else 0])
        of = "" if affine.scale.size == 1 else f"of channel {channel}"
        real = float(real_values(data[None], tensor)[0][place])
        found += [
            Step(f"scale {whose}", of, scale),
            Step(f"zero point {whose}", of, zero),
            Step(f"real number {whose}", f"(value - {zero}) * scale", real),
        ]
    return found
