"""What a caller asks of TFLite: arrays that fit the model, and tensors that it can give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.oracle.results import OracleModel, OracleTensor
from tflq.errors import InputError

Inputs = Sequence[NDArray[np.generic]] | Mapping[str, NDArray[np.generic]]
Shapes = tuple[tuple[int, ...] | None, ...]


def check_inputs(
    model: OracleModel, inputs: Inputs, resize: bool
) -> tuple[tuple[NDArray[np.generic], ...], int, Shapes]:
    """Return the arrays in order, the number of samples S, and the new shape of each input (None: as in the file).

    Args:
        model: the loaded model.
        inputs: one array [S, *shape] per input, in order or by name.
        resize: also take shapes that contradict dimensions that the file fixes.

    Raises:
        InputError: wrong number of arrays, dtype, shape or number of samples.
    """
    arrays = _in_order(model, inputs)
    for place, array in enumerate(arrays):
        if array.ndim == 0 or len(array) == 0 or len(array) != len(arrays[0]):
            raise InputError(
                f"input {place}: shape {array.shape}: the first axis must be the samples, "
                f"as many in every input and at least one"
            )
    described = [model.tensors[index] for index in model.inputs]
    shapes = tuple(_check(*item, resize) for item in zip(range(len(arrays)), arrays, described, strict=True))
    return arrays, len(arrays[0]) if arrays else 1, shapes


def _in_order(model: OracleModel, inputs: Inputs) -> tuple[NDArray[np.generic], ...]:
    if isinstance(inputs, Mapping):
        if set(inputs) != set(model.input_names):
            raise InputError(f"inputs {', '.join(sorted(inputs))}: the model takes {', '.join(model.input_names)}")
        return tuple(np.asarray(inputs[name]) for name in model.input_names)
    if len(inputs) != len(model.inputs):
        raise InputError(f"{len(inputs)} input arrays: the model takes {len(model.inputs)}")
    return tuple(np.asarray(array) for array in inputs)


def _check(place: int, array: NDArray[np.generic], tensor: OracleTensor, resize: bool) -> tuple[int, ...] | None:
    dtype = "str" if array.dtype.kind in "OSU" else array.dtype.name
    if dtype != tensor.dtype:
        raise InputError(f"input {place} ({tensor.name}): {dtype} given, the model takes {tensor.dtype}")
    shape = array.shape[1:]
    if shape == tensor.shape:
        return None
    signature = tensor.shape_signature or tensor.shape
    fits = len(shape) == len(signature) and all(want in (-1, got) for want, got in zip(signature, shape, strict=True))
    if not fits and not resize:
        raise InputError(
            f"input {place} ({tensor.name}): samples of shape {list(shape)} given, the model takes {list(signature)}"
        )
    return shape


Tensors = Literal["all", "outputs"] | Iterable[int]

UNDESCRIBED = "TFLite knows no such tensor, or its Python interface has no name for the type"
_DELEGATED = "kernels AUTO: the XNNPACK delegate does not write intermediate tensors"


def select(
    model: OracleModel, details: Mapping[int, OracleTensor], wanted: str | tuple[int, ...], *, delegated: bool
) -> tuple[tuple[int, ...], dict[int, str]]:
    """Return the indices to ask for, ascending, and those that need not be asked for, with the reason.

    Args:
        model: the loaded model.
        details: its tensors, as far as TFLite describes them.
        wanted: "all" but constants that are no outputs, "outputs", or indices.
        delegated: whether a delegate runs the graph; its intermediate tensors are then never written.
    """
    if wanted == "outputs":
        asked = set(model.outputs)
    elif isinstance(wanted, str):
        asked = {*range(max(details, default=-1) + 1)} - model.constants | {*model.outputs}
    else:
        asked = set(wanted)
    refused = dict.fromkeys(sorted(asked - set(details)), UNDESCRIBED)
    if delegated:
        visible = {*model.inputs, *model.outputs, *model.constants, *refused}
        refused |= dict.fromkeys(sorted(asked - visible), _DELEGATED)
    return tuple(sorted(asked - set(refused))), refused
