"""`Oracle`: TFLite behind a process border, with samples, chunks and every tensor.

What a caller asks of TFLite: arrays that fit the model, and tensors that it can give.
"""

from __future__ import annotations

import hashlib
import statistics
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq.errors import InputError, OptionError, OracleError
from tflq.oracle import protocol
from tflq.oracle.package import DISTRIBUTIONS, RESOLVERS, Kernels, Package, find_package
from tflq.oracle.process import WorkerProcess
from tflq.oracle.results import (
    OracleIdentity,
    OracleModel,
    OracleRefused,
    OracleRun,
    OracleTensor,
    OracleTiming,
    chunk_samples,
    joined,
)

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


State = Literal["independent", "stream"]
_Reply = TypeVar("_Reply", bound=protocol.Message)


class Oracle:
    """TFLite's own interpreter in a worker process that starts with the first use and serves many models.

    The worker keeps the last model: running the same bytes again does not load them again. When TFLite aborts, hangs
    or crashes, the call raises and the next one starts a new worker. Usable as a context manager; `close` ends the
    worker, and it also ends with this object and with this process. Calls from several threads take turns.

    Args:
        package: "litert" (ai-edge-litert), "tensorflow", or "auto": litert where it is installed.
        kernels: "BUILTIN_REF" are TFLite's reference kernels, "BUILTIN" its optimized ones, neither with a delegate;
            "AUTO" is TFLite's default: the optimized kernels and XNNPACK.
        threads: of TFLite. Sums of floats may depend on it.
        timeout_s: the longest that loading a model, or running one sample, may take.

    Raises:
        MissingExtraError: the package is not installed.
        OptionError: an argument outside its limits.
    """

    def __init__(
        self, package: Package = "auto", kernels: Kernels = "BUILTIN_REF", threads: int = 1, timeout_s: float = 120.0
    ) -> None:
        if package not in ("auto", *DISTRIBUTIONS):
            raise OptionError(f"oracle package {package!r}: auto, {', '.join(DISTRIBUTIONS)} exist")
        if kernels not in RESOLVERS:
            raise OptionError(f"oracle kernels {kernels!r}: {', '.join(RESOLVERS)} exist")
        if threads < 1 or timeout_s <= 0:
            raise OptionError(f"oracle threads {threads}, timeout {timeout_s} s: both must be positive")
        self._package = find_package(package)
        self._kernels, self._threads, self._timeout_s = kernels, threads, timeout_s
        self._lock = threading.RLock()
        self._worker: WorkerProcess | None = None
        self._version: str | None = None
        self._model: tuple[tuple[bytes, str | None, bool], OracleModel] | None = None
        self._prepared: tuple[Shapes, dict[int, OracleTensor]] | None = None
        self._stream: object = None

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker. A later call starts another one."""
        with self._lock:
            if self._worker is not None:
                self._worker.kill()
            self._worker = None

    @property
    def identity(self) -> OracleIdentity:
        """Package, version and kernels; the version is what the worker imported, so the first question starts it."""
        with self._lock:
            version = self._version or self._started().version
        return OracleIdentity(DISTRIBUTIONS[self._package], version, self._kernels)

    @property
    def worker_pid(self) -> int | None:
        """Process id of the worker, None where none runs."""
        return self._worker.pid if self._worker is not None and self._worker.alive else None

    def describe(self, model: bytes, *, signature: str | None = None) -> OracleModel:
        """Return what TFLite says about a model without running it; raises as `iterate` does."""
        with self._lock:
            return self._load(model, signature, preserve=self._kernels != "AUTO")

    def run(
        self,
        model: bytes,
        inputs: Inputs,
        *,
        tensors: Tensors = "all",
        signature: str | None = None,
        state: State = "independent",
        resize: bool = False,
    ) -> OracleRun:
        """Run all samples and return their tensors at once; arguments and errors as for `iterate`."""
        return joined(
            list(self.iterate(model, inputs, tensors=tensors, signature=signature, state=state, resize=resize))
        )

    def iterate(
        self,
        model: bytes,
        inputs: Inputs,
        *,
        tensors: Tensors = "all",
        signature: str | None = None,
        state: State = "independent",
        resize: bool = False,
        chunk_bytes: int = 32 << 20,
    ) -> Iterator[OracleRun]:
        """Run the samples and yield their tensors chunk by chunk, in order.

        Args:
            model: the .tflite file.
            inputs: one array [S, *shape] per model input, in the model's order (or by name, as `describe` gives them).
                A shape that fills in open dimensions of the file resizes the input.
            tensors: "all" but the constants, "outputs", or tensor indices.
            signature: run this signature's subgraph; None is subgraph 0.
            state: "independent" starts each sample from cleared state, "stream" clears it before the first one only.
            resize: also take input shapes that contradict dimensions that the file fixes.
            chunk_bytes: about how much one chunk may hold; results do not depend on it.

        Raises:
            InputError: an array of the wrong shape, dtype or number of samples.
            OptionError: an unknown `state` or word for `tensors`.
            OracleRefused, OracleAborted, OracleTimeout: what TFLite did.
        """
        if state not in ("independent", "stream"):
            raise OptionError(f"oracle state {state!r}: independent, stream exist")
        wanted = tensors if isinstance(tensors, str) else tuple(int(index) for index in tensors)
        if isinstance(wanted, str) and wanted not in ("all", "outputs"):
            raise OptionError(f"oracle tensors {wanted!r}: all, outputs and indices exist")
        return self._chunks(model, inputs, wanted, signature, state, resize, chunk_bytes)

    def _chunks(
        self,
        model: bytes,
        inputs: Inputs,
        wanted: str | tuple[int, ...],
        signature: str | None,
        state: State,
        resize: bool,
        chunk_bytes: int,
    ) -> Iterator[OracleRun]:
        start, total, stream = 0, 1, object()
        while start < total:
            with self._lock:
                loaded = self._load(model, signature, preserve=wanted != "outputs" and self._kernels != "AUTO")
                arrays, total, shapes = check_inputs(loaded, inputs, resize)
                details = self._prepare(loaded, shapes)
                if state == "stream" and start > 0 and self._stream is not stream:
                    raise OracleError("another request came between two chunks of a stream: its state is lost")
                indices, refused = select(loaded, details, wanted, delegated=self._kernels == "AUTO")
                count = min(total - start, chunk_samples(details, indices, chunk_bytes))
                part = tuple(np.ascontiguousarray(array[start : start + count]) for array in arrays)
                request = protocol.Run(part, count, indices, fresh=state == "independent", first=start == 0)
                ran = self._ask(request, protocol.Ran)
                self._stream = stream
            unavailable = {**ran.unavailable, **refused}
            yield OracleRun(self.identity, loaded, details, start, count, ran.tensors, ran.ragged, unavailable)
            start += count

    def time(
        self, model: bytes, inputs: Inputs, repeats: int = 100, *, signature: str | None = None, resize: bool = False
    ) -> OracleTiming:
        """Measure `repeats` invocations, the samples in turn; inputs and errors as for `iterate`.

        Intermediate tensors are not preserved, so memory is planned as in a product.
        """
        if repeats < 1:
            raise OptionError(f"repeats {repeats}: at least 1")
        with self._lock:
            loaded = self._load(model, signature, preserve=False)
            arrays, samples, shapes = check_inputs(loaded, inputs, resize)
            self._prepare(loaded, shapes)
            seconds = self._ask(protocol.Time(arrays, samples, repeats), protocol.Timed).seconds
        return OracleTiming(self.identity, min(seconds), statistics.median(seconds), repeats)

    def _load(self, content: bytes, signature: str | None, preserve: bool) -> OracleModel:
        worker = self._started()
        key = (hashlib.sha256(content).digest(), signature, preserve)
        if self._model is not None and self._model[0] == key:
            return self._model[1]
        self._model = self._prepared = None
        if not content:
            raise OracleRefused(f"{self.identity}: the model is empty")
        loaded = self._ask(
            protocol.Load(np.frombuffer(content, np.uint8), signature, preserve), protocol.Loaded, worker
        )
        model = OracleModel(
            tensors={tensor.index: tensor for tensor in loaded.tensors},
            inputs=tuple(loaded.inputs.values()),
            outputs=tuple(loaded.outputs.values()),
            input_names=tuple(loaded.inputs),
            output_names=tuple(loaded.outputs),
            constants=loaded.constants,
            signatures=loaded.signatures,
        )
        for index in model.inputs:
            if index not in model.tensors:
                raise OracleRefused(f"{self.identity}: input tensor {index}: {UNDESCRIBED}")
        self._model = (key, model)
        return model

    def _prepare(self, model: OracleModel, shapes: Shapes) -> dict[int, OracleTensor]:
        """Plan the memory; the scratch tensors that kernels add to the model's own are left out."""
        if self._prepared is None or self._prepared[0] != shapes:
            self._prepared = None
            prepared = self._ask(protocol.Prepare(shapes), protocol.Prepared)
            self._prepared = (shapes, {t.index: t for t in prepared.tensors if t.index in model.tensors})
        return self._prepared[1]

    def _started(self) -> WorkerProcess:
        if self._worker is None or not self._worker.alive:
            self._model = self._prepared = None
            self._worker = WorkerProcess(self._package, self._kernels, self._threads, self._timeout_s)
            self._version = self._worker.version
        return self._worker

    def _ask(self, request: protocol.Request, kind: type[_Reply], worker: WorkerProcess | None = None) -> _Reply:
        self._stream = None
        reply = (worker or self._started()).request(request)
        if isinstance(reply, kind):
            return reply
        self._model = self._prepared = None
        if isinstance(reply, protocol.Refused):
            raise OracleRefused(f"{self.identity}: {reply.message}")
        raise OracleError(f"the oracle's worker answered {type(request).__name__} with {type(reply).__name__}")
