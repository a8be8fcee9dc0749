"""One graph with its values: what TFLite calls a subgraph of an interpreter."""

from __future__ import annotations

from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike

from tflq.errors import InputError
from tflq.graph import Array, DType, Model, Tensor
from tflq.interpreter import Engine
from tflq.interpreter.execution.control import Session
from tflq.interpreter.execution.program import fresh
from tflq.interpreter.execution.settle import resize, settle
from tflq.interpreter.execution.values import one_sample
from tflq.tflite_interpreter.details import TensorDetails, tensor_details
from tflq.tflite_interpreter.errors import also

_NOT_ALLOCATED = "the tensors are not allocated: call allocate_tensors() first"


class Subgraph:
    """A graph of a model, prepared for the present shapes of its inputs, and the values of its tensors."""

    def __init__(self, model: Model, number: int, session: Session, compresses_zero_points: bool) -> None:
        self._compresses_zero_points = compresses_zero_points
        self._model = model
        self._number = number
        self._session = session
        self.graph = model.graphs[number]
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._engine: Engine | None = None
        self._values: dict[int, Array] = {}
        self._views = WeakSet[_Memory]()

    @property
    def is_viewed(self) -> bool:
        """Whether a view of a tensor is still held."""
        return bool(self._views)

    def allocate(self) -> None:
        """Prepare for the present shapes; all tensors are 0, and variables start anew.

        Where it is prepared already, values and variables stay.

        Raises:
            UnsupportedError: an operator or type without a kernel.
            GraphError: shapes that do not fit.
        """
        if self._engine is not None:
            return
        original = self._model.graphs[self._number]
        self._shapes = {t: shape for t, shape in self._shapes.items() if t in original.inputs}
        self.graph = resize(original, self._shapes) if self._shapes else original
        family = list(self._model.graphs)
        family[self._number] = self.graph
        self._engine = Engine(self.graph, graphs=family, state="stream", session=self._session)
        for key in [key for key in self._session.variables if key[0] == self._number]:
            del self._session.variables[key]
        self._values = {t: _nothing(self.graph.tensors[t]) for t in self.graph.inputs}

    def ready(self) -> Engine:
        """Return the engine.

        Raises:
            InputError: it is not allocated.
        """
        if self._engine is None:
            raise InputError(_NOT_ALLOCATED)
        return self._engine

    def resize(self, t: int, shape: tuple[int, ...], strict: bool) -> None:
        """Give a tensor another shape; what is no input takes, on allocation, the shape that follows from the inputs.

        Raises:
            InputError: there is no such tensor, it is constant, or `strict` forbids the shape; also a RuntimeError.
        """
        with also(RuntimeError):
            tensor = self._tensor(t)
            if tensor.data is not None:
                raise InputError(f"tensor '{tensor.name}' is constant; only inputs take other shapes")
            if min(shape, default=0) < 0:
                raise InputError(f"input '{tensor.name}': shape {shape}; sizes must be 0 or more")
            signature = tensor.shape_signature or tensor.shape
            fits = len(shape) == len(signature) and all(s in (-1, n) for s, n in zip(signature, shape, strict=True))
            if strict and not fits:
                raise InputError(f"input '{tensor.name}': {shape} is not allowed by its shape signature {signature}")
        if shape != self.shape(t):
            self._shapes[t] = shape
            self._engine = None
            self._values = {}

    def set(self, t: int, value: ArrayLike) -> None:
        """Copy a value into a tensor; the next invocation reads inputs and variables, and writes the others anew.

        Raises:
            InputError: it is constant, not allocated, or the value has another type or shape.
        """
        tensor = self._tensor(t)
        if tensor.data is not None:
            raise InputError(f"tensor '{tensor.name}' is constant; a constant cannot be set")
        array = _array(value, tensor)
        if array.dtype.newbyteorder("=") != tensor.dtype.storage or array.shape != self.shape(t):
            raise InputError(
                f"input '{tensor.name}': found {array.dtype}{list(array.shape)}, "
                f"the model takes {tensor.dtype.value}{list(self.shape(t))}"
            )
        self.get(t)[...] = array

    def invoke(self) -> None:
        """Run once.

        Raises:
            InputError: it is not allocated.
        """
        engine = self.ready()
        computed = [t for node in engine.graph.nodes for t in node.outputs]
        results = engine.run([self._values[t][None] for t in engine.graph.inputs], keep=computed)
        self._values.update((t, value[0, ...]) for t, value in results.items())

    def get(self, t: int) -> Array:
        """Return the present value of a tensor, not copied: 0 where nothing was computed yet.

        Raises:
            InputError: there is no such tensor; it is not allocated; its shape is known only when it is computed.
        """
        tensor = self._tensor(t)
        if tensor.data is not None:
            return tensor.data
        if self._engine is None and 0 in self.shape(t):
            return np.zeros(self.shape(t), tensor.dtype.storage)
        graph = self.ready().graph
        if tensor.is_variable and t not in graph.inputs:
            state: Array = one_sample(self._session.variables.setdefault((self._number, t), fresh(tensor)), 0)[0, ...]
            return state
        if t not in self._values:
            if t in settle(self.graph).open:
                raise InputError(f"tensor {t} '{tensor.name}' has no value yet: call invoke() first")
            self._values[t] = _nothing(graph.tensors[t])
        return self._values[t]

    def view(self, t: int) -> Array:
        """Return the present value of a tensor to read and write in place; it counts as held while it lives.

        Raises:
            InputError: as `get`.
        """
        value = self.get(t)
        if value.dtype == object:
            return value
        memory = _Memory(value)
        self._views.add(memory)
        return np.asarray(memory).view(value.dtype)

    def shape(self, t: int) -> tuple[int, ...]:
        """Return the present shape of a tensor: that of its value, where there is one."""
        if self._engine is not None:
            return self._values[t].shape if t in self._values else self._engine.graph.tensors[t].shape
        return self._shapes.get(t, self._tensor(t).shape)

    def details(self, t: int) -> TensorDetails:
        """Return the details of a tensor.

        Raises:
            InputError: there is no such tensor.
        """
        self._tensor(t)
        return tensor_details(self.graph, t, self.shape(t), self._compresses_zero_points)

    def _tensor(self, t: int) -> Tensor:
        if not 0 <= t < len(self.graph.tensors):
            raise InputError(f"tensor {t} does not exist, tensors are 0..{len(self.graph.tensors) - 1}")
        return self.graph.tensors[t]


class _Memory:
    """What every view of a value holds on to, and slices of the view too: when it goes, none is left."""

    def __init__(self, value: Array) -> None:
        self._value = value
        self.__array_interface__ = value.__array_interface__


def _nothing(tensor: Tensor) -> Array:
    value: Array = np.zeros(tensor.shape, tensor.dtype.storage)
    if tensor.dtype is DType.STRING:
        value.fill(b"")
    return value


def _array(value: ArrayLike, tensor: Tensor) -> Array:
    """Return a value as an array; strings must come as one."""
    try:
        array: Array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"input '{tensor.name}': the value is no array: {error}") from None
    if tensor.dtype is not DType.STRING:
        return array
    if not isinstance(value, np.ndarray):
        raise InputError(
            f"input '{tensor.name}': found {type(value).__name__}; strings come as an array of str or bytes"
        )
    return _strings(array) if array.dtype.kind in "SUO" else array


def _strings(value: Array) -> Array:
    """Return strings of any kind as an object array of bytes, text as UTF-8."""
    result: Array = np.empty(value.shape, object)
    flat = [text.encode() if isinstance(text, str) else text for text in value.reshape(-1).tolist()]
    wrong = [text for text in flat if not isinstance(text, bytes)]
    if wrong:
        raise InputError(f"found {wrong[0]!r} among strings; allowed are str and bytes")
    result.reshape(-1)[:] = np.array(flat, object) if flat else []
    return result
