"""TFLite's interpreter as the worker uses it: one class over both packages.

The methods of the public Interpreter reach subgraph 0 only; the wrapper below it, which its own SignatureRunner uses,
takes a subgraph index in every call. Both packages have the same wrapper.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.oracle.package import INTERPRETERS, RESOLVERS, installed_version
from tflq.oracle.results import OracleTensor


class Runtime:
    """An imported package with a kernel set. Raises ImportError where the package is broken."""

    def __init__(self, package: str, kernels: str, threads: int) -> None:
        module = importlib.import_module(INTERPRETERS[package])
        self._interpreter = module.Interpreter
        self._options = {
            "experimental_op_resolver_type": module.OpResolverType[RESOLVERS[kernels]],
            "num_threads": threads,
        }
        self.version = installed_version(package)

    def open(self, content: bytes, signature: str | None, preserve: bool) -> TfliteModel:
        """Load a model. `preserve` keeps every intermediate tensor: without it they share memory and are stale."""
        interpreter = self._interpreter(
            model_content=content, experimental_preserve_all_tensors=preserve, **self._options
        )
        return TfliteModel(interpreter, signature)


@dataclass(frozen=True)
class Interface:
    """Inputs and outputs of a model or of one of its signatures, by name, in order."""

    inputs: dict[str, int]
    outputs: dict[str, int]


class TfliteModel:
    """One loaded model, one of its subgraphs."""

    def __init__(self, interpreter: Any, signature: str | None) -> None:  # noqa: ANN401 - an untyped package's object
        self._public = interpreter
        self._wrapper = interpreter._interpreter
        self.signatures = tuple(interpreter.get_signature_list())
        if signature is not None and signature not in self.signatures:
            raise ValueError(f"no signature {signature!r}; the model has {', '.join(self.signatures) or 'none'}")
        self._subgraph = 0 if signature is None else int(self._wrapper.GetSubgraphIndexFromSignature(signature))
        # Without a subgraph index Allocate and Invoke act on the whole interpreter, delegates included.
        self._where = () if self._subgraph == 0 else (self._subgraph,)
        self.interface = self._find_interface(signature)

    def _find_interface(self, signature: str | None) -> Interface:
        if signature is not None:
            named = self._wrapper.GetSignatureDefs()[signature]
            return Interface(dict(named["inputs"]), dict(named["outputs"]))
        return Interface(self._number(self._wrapper.InputIndices()), self._number(self._wrapper.OutputIndices()))

    def _number(self, indices: Sequence[int]) -> dict[str, int]:
        """Names of tensors may repeat, or one tensor stand twice: their place makes them unique."""
        return {f"{place}:{self._wrapper.TensorName(int(i), 0)}": int(i) for place, i in enumerate(indices)}

    def describe(self) -> tuple[OracleTensor, ...]:
        """Every tensor that has a type; scratch tensors that a kernel has announced but not planned have none."""
        return tuple(_tensor(details) for details in self._public.get_tensor_details(self._subgraph))

    def is_stateful(self) -> bool:
        """Whether something may outlive an invocation that `reset_variables` does not reach."""
        names = {self._wrapper.NodeName(node) for node in range(self._wrapper.NumNodes())}
        return bool(names & _KEEPS_STATE) or self._public.num_subgraphs() > 1

    def resize(self, index: int, shape: tuple[int, ...]) -> None:
        """Give an input a new shape; memory must be planned again."""
        self._wrapper.ResizeInputTensor(index, np.array(shape, np.int32), False, self._subgraph)

    def allocate(self) -> None:
        """Plan the memory; variables start anew."""
        self._wrapper.AllocateTensors(*self._where)

    def reset_variables(self) -> None:
        """Clear variable tensors (LSTM and SVDF state)."""
        self._public.reset_all_variables()

    def write(self, index: int, value: NDArray[np.generic]) -> None:
        """Set an input."""
        self._wrapper.SetTensor(index, value, self._subgraph)

    def invoke(self) -> None:
        """Run once."""
        self._wrapper.Invoke(*self._where)

    def read(self, index: int) -> NDArray[np.generic]:
        """Return a copy of a tensor, strings as objects; ValueError, in TFLite's words, where it has no data.

        A resource's tensor holds its number, 4 bytes. TFLite's GetTensor takes them for a count of strings and reads
        that many offsets behind them: with the number 0 no string, with 1 memory that is not its own (SIGSEGV or None).
        """
        if _is_resource(self._wrapper.TensorType(index, self._subgraph)):
            raise ValueError("a resource, which TFLite does not show")
        try:
            value = self._wrapper.GetTensor(index, self._subgraph)
        except (ValueError, RuntimeError):
            shape = tuple(int(n) for n in self._wrapper.TensorSize(index, self._subgraph))
            if 0 not in shape:
                raise
            return np.empty(shape, self._wrapper.TensorType(index, self._subgraph))
        return np.asarray(value)


# Resources, hash tables and random generators live beside the tensors. Other subgraphs may hold any of them.
_KEEPS_STATE = frozenset(
    {
        "ASSIGN_VARIABLE",
        "CALL_ONCE",
        "HASHTABLE",
        "HASHTABLE_FIND",
        "HASHTABLE_IMPORT",
        "HASHTABLE_SIZE",
        "MULTINOMIAL",
        "RANDOM_STANDARD_NORMAL",
        "RANDOM_UNIFORM",
        "READ_VARIABLE",
        "VAR_HANDLE",
    }
)


def _is_resource(kind: type) -> bool:
    """Resources and variants are numpy's objects in TFLite's Python interface; strings are its bytes."""
    return bool(np.dtype(kind) == np.object_)


def _dtype_name(kind: type) -> str:
    if _is_resource(kind):
        return "resource"
    return "str" if kind in (np.bytes_, np.str_) else np.dtype(kind).name


def _tensor(details: dict[str, Any]) -> OracleTensor:
    quantization = details["quantization_parameters"]
    return OracleTensor(
        index=int(details["index"]),
        name=str(details["name"]),
        shape=tuple(int(n) for n in details["shape"]),
        shape_signature=tuple(int(n) for n in details["shape_signature"]),
        dtype=_dtype_name(details["dtype"]),
        scales=tuple(float(scale) for scale in quantization["scales"]),
        zero_points=tuple(int(zero_point) for zero_point in quantization["zero_points"]),
        quantized_dimension=int(quantization["quantized_dimension"]),
    )
