"""Nodes that can be lowered only when they run: operands or shapes that are computed from the data.

Samples are grouped by the data that decide the params: the shapes of all inputs, and the values of the operands that
the kernel requires as constants. Each group is lowered once (and remembered) and runs vectorized.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from tflq.errors import GraphError, RuntimeOperandError, UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.execution.values import Value, merge, one_sample, select
from tflq.interpreter.registry import Kernel

_REMEMBERED = 64
_Key = tuple[object, ...]


@dataclass(frozen=True)
class Deferred:
    """Placeholder in a lowered node for the integers that are decided at run time.

    Attributes:
        reason: Reason for the delay.
    """

    reason: str


class DeferredNode:
    """Lowers and runs one node for the operands that it meets."""

    def __init__(self, node: Node, operands: Operands, kernel: Kernel) -> None:
        self._node = node
        self._operands = operands
        self._kernel = kernel
        self._asked: frozenset[int] = frozenset()
        self._known: dict[_Key, object] = {}
        self._lock = Lock()  # chunks may run on several threads

    def run(self, values: Sequence[Value | None], samples: int) -> list[Value]:
        """Run the node on all samples.

        Args:
            values: the node's inputs.
            samples: S.

        Returns:
            A value for each result of the kernel.

        Raises:
            GraphError: operands that the kernel refuses.
            UnsupportedError: likewise.
        """
        groups = self._groups(values, samples)
        parts = []
        for members in groups:
            chosen = [None if v is None else select(v, members) for v in values]
            arrays = [None if v is None else _array(v) for v in chosen]
            parts.append((members, self._kernel.run(self.params_for(arrays), *arrays)))
        count = len(parts[0][1])
        return [merge([(members, results[i]) for members, results in parts], samples) for i in range(count)]

    def params_for(self, arrays: Sequence[Array | None]) -> object:
        """Return the params of one group of samples, lowered for their shapes and the required values."""
        with self._lock:
            return self._found_or_lowered(arrays)

    def _groups(self, values: Sequence[Value | None], samples: int) -> list[np.ndarray]:
        shared = all(v is None or (isinstance(v, np.ndarray) and v.shape[0] == 1) for v in values)
        if shared or samples == 1:
            self.params_for([None if v is None else one_sample(v, 0) for v in values])
            return [np.zeros(1, np.int64)]
        if self._kernel.per_sample:
            return [np.array([s]) for s in range(samples)]
        keys: dict[_Key, list[int]] = {}
        for s in range(samples):
            arrays = [None if v is None else one_sample(v, s) for v in values]
            self.params_for(arrays)  # determines which operands are required, before they are compared
            keys.setdefault(self._key(arrays), []).append(s)
        return [np.array(members) for members in keys.values()]

    def _found_or_lowered(self, arrays: Sequence[Array | None]) -> object:
        while True:
            key = self._key(arrays)
            if key in self._known:
                return self._known[key]
            try:
                params = self._kernel.lower(self._node, self._concrete(arrays))
            except RuntimeOperandError as error:
                if error.position in self._asked:
                    raise
                self._asked |= {error.position}
                continue
            except (GraphError, UnsupportedError) as error:
                raise placed(error, self._operands.where) from None
            if len(self._known) >= _REMEMBERED:
                self._known.pop(next(iter(self._known)))
            self._known[key] = params
            return params

    def _key(self, arrays: Sequence[Array | None]) -> _Key:
        shapes = tuple(None if a is None else a.shape[1:] for a in arrays)
        asked = [arrays[i] for i in sorted(self._asked)]
        return (shapes, *(None if a is None else _content(a[0]) for a in asked))

    def _concrete(self, arrays: Sequence[Array | None]) -> Operands:
        """Return the operands with the present shapes, and the required values."""
        inputs = []
        for i, (tensor, array) in enumerate(zip(self._operands.inputs, arrays, strict=True)):
            if tensor is None or array is None or tensor.is_constant:
                inputs.append(tensor)
                continue
            data = array[0] if i in self._asked else None
            inputs.append(replace(tensor, shape=array.shape[1:], data=data))
        return replace(self._operands, inputs=tuple(inputs))


def placed(error: GraphError | UnsupportedError, where: str) -> GraphError | UnsupportedError:
    """Return the error with the words that name the node as a prefix, unless it has them already."""
    return error if str(error).startswith(where) else type(error)(f"{where}: {error}")


def _content(array: Array) -> object:
    return tuple(array.reshape(-1).tolist()) if array.dtype == object else array.tobytes()


def _array(value: Value) -> Array:
    assert isinstance(value, np.ndarray), "samples of one group have one shape"
    return value
