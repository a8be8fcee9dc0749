"""TensorFlow Lite Micro as the worker uses it: the package tflite-micro with the methods of runtime.py.

The package uses the sizes that a file stores and allocates one arena when it opens a model. Its interface has no
constants, shapes or names: the file has them.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq.converters.tflite import read_model
from tflq.graph import Affine, Tensor
from tflq.oracle.package import INTERPRETERS, installed_version
from tflq.oracle.results import OracleTensor
from tflq.oracle.runtime import Interface

ARENA_BYTES = 64 << 20
"""Arena of every model, plus twice its file and its tensors: all tensors are preserved."""
_NOISE = ("INFO", "W0", "E0")
_Result = TypeVar("_Result")


class MicroRuntime:
    """The imported package. Raises ImportError if it is broken."""

    def __init__(self, package: str) -> None:
        self._module = importlib.import_module(INTERPRETERS[package])
        self.version = installed_version(package)

    def open(self, content: bytes, signature: str | None, preserve: bool) -> MicroModel:  # noqa: ARG002 - see Runtime
        """Load a model; all tensors are preserved.

        Raises:
            ValueError: A signature, which the package does not have.
        """
        if signature is not None:
            raise ValueError(f"no signature {signature!r}; TensorFlow Lite Micro runs subgraph 0")
        return MicroModel(self._module, content)


class MicroModel:
    """One loaded model."""

    signatures: tuple[str, ...] = ()

    def __init__(self, module: Any, content: bytes) -> None:  # noqa: ANN401 - an untyped package's module
        self._module, self._content = module, content
        self._graph = read_model(content).main
        self._interpreter: Any = None
        names = [
            {f"{place}:{self._graph.tensors[t].name}": t for place, t in enumerate(ends)} for ends in self._find_ends()
        ]
        self.interface = Interface(*names)

    def _find_ends(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self._graph.inputs, self._graph.outputs

    def describe(self) -> tuple[OracleTensor, ...]:
        """Return every tensor with the shape that the file stores."""
        return tuple(_describe(index, tensor) for index, tensor in enumerate(self._graph.tensors))

    def is_stateful(self) -> bool:
        """Return False: `reset_variables` resets everything."""
        return False

    def resize(self, index: int, shape: tuple[int, ...]) -> None:
        """Refuse another shape.

        Raises:
            ValueError: Always: the package takes the stored shapes.
        """
        raise ValueError(f"input {index}: shape {list(shape)}: TensorFlow Lite Micro takes the stored shape only")

    def allocate(self) -> None:
        """Create the interpreter, which plans the arena.

        Raises:
            ValueError: The package refuses the model, with its own reason.
        """
        tensors = sum(tensor.size * tensor.dtype.storage.itemsize for tensor in self._graph.tensors)
        arena = ARENA_BYTES + 2 * (len(self._content) + tensors)
        configuration = self._module.InterpreterConfig.kPreserveAllTensors
        self._interpreter = _call_with_reason(
            # the keyword is spelt so in the package
            lambda: self._module.Interpreter.from_bytes(
                self._content, arena_size=arena, intrepreter_config=configuration
            )
        )

    def reset_variables(self) -> None:
        """Restore the state after allocation."""
        _call_with_reason(self._interpreter.reset)

    def write(self, index: int, value: NDArray[np.generic]) -> None:
        """Set an input."""
        self._interpreter.set_input(value, self._graph.inputs.index(index))

    def invoke(self) -> None:
        """Run once."""
        _call_with_reason(self._interpreter.invoke)

    def read(self, index: int) -> NDArray[np.generic]:
        """Return a copy of a tensor; before `allocate` of constants only.

        Raises:
            ValueError: A tensor without data.
        """
        if self._interpreter is None:
            data = self._graph.tensors[index].data
            if data is None:
                raise ValueError("not allocated yet")
            return np.asarray(data)
        return np.array(self._interpreter.GetTensor(index, 0)["tensor_data"])


def _call_with_reason(function: Callable[[], _Result]) -> _Result:
    """Call a function; if it fails, raise ValueError with the first line that it prints on standard error."""
    with tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            return function()
        except (ValueError, RuntimeError) as error:
            file.seek(0)
            lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines()]
            reasons = [line for line in lines if line and not line.startswith(_NOISE)]
            raise ValueError(reasons[0] if reasons else str(error)) from error
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def _describe(index: int, tensor: Tensor) -> OracleTensor:
    affine = tensor.quantization if isinstance(tensor.quantization, Affine) else None
    return OracleTensor(
        index=index,
        name=tensor.name,
        shape=tensor.shape,
        shape_signature=tensor.shape,
        dtype=np.dtype(tensor.dtype.storage).name,
        scales=() if affine is None else tuple(float(scale) for scale in affine.scale),
        zero_points=() if affine is None else tuple(int(zero_point) for zero_point in affine.zero_point),
        quantized_dimension=0 if affine is None or affine.axis is None else affine.axis,
    )
