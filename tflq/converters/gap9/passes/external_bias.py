"""A constant added behind a filter is part of its bias (docs/rules/gap9/filters.md#filters)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.operators import FILTERS
from tflq.converters.gap9.passes.constants import real_constant
from tflq.converters.passes.patterns import bias_of
from tflq.converters.passes.rewrite import constant
from tflq.graph.rewriting import ANY, Constant, find_matches, op

_SUM = op("add", op(FILTERS, name="filter"), Constant("summand", single=False), activation=ANY)
_DEPARTURE = "NNTool adds the constant of {add} to the bias and keeps the range in front of it: it clips there (17.13)"


def fold_biases(editor: Gap9Editor) -> None:
    """Fold the addition of one constant, or one per channel, into the bias of the filter that it alone reads.

    bias' = bias + constant, in real numbers. The filter then writes the sum in the range of the file's sum; NNTool, and
    numerics=nntool, keep the range of the filter.
    """
    for place in find_matches(editor, _SUM):
        add, filter_ = place.root, place.nodes["filter"]
        stored, source, summed = (editor.tensors[t] for t in (place.values["summand"], *filter_.outputs, *add.outputs))
        channels = source.shape[-1]
        if stored.shape[-1:] != (stored.size,) or stored.size not in (1, channels) or summed.shape != source.shape:
            continue
        summand, bias = real_constant(stored).reshape(-1), bias_of(editor, filter_)
        total = np.asarray((np.zeros(channels, summand.dtype) if bias is None else real_constant(bias)) + summand)
        name = f"{filter_.name}_bias" if bias is None else bias.name
        inputs = (*filter_.inputs[:2], editor.add_tensor(constant(name, total)))
        if source.range is not None and summed.range is not None and source.range != summed.range:
            filter_ = editor.change(filter_, departure=_DEPARTURE.format(add=add.name))
        if editor.is_vendor(filter_):
            editor.tensors[add.outputs[0]] = replace(summed, range=source.range)
        editor.remove(add)
        editor.change(filter_, inputs=inputs, outputs=add.outputs)
