"""A process that runs tflq on one file after another within a limit of memory; started by subject.py.

Requests and replies are pickles of tuples on its pipes: it is never given anything but what subject.py writes.
"""

from __future__ import annotations

import pickle
import resource
import sys
import time

import numpy as np

from tflq.converters.tflite import model_from_bytes
from tflq.errors import TflqError
from tflq.graph import Array, Graph
from tflq.interpreter import Engine

Reply = tuple[str, str, float, list[Array], list[Array]]


def run(content: bytes) -> Reply:
    """Read and run a file; return the outcome, its words, seconds, inputs and outputs."""
    start = time.perf_counter()
    inputs: list[Array] = []
    outputs: list[Array] = []
    try:
        model = model_from_bytes(content, "hostile")
        engine = Engine(model.main, graphs=model.graphs, state="independent")
        inputs = [_values(model.main, t) for t in model.main.inputs]
        found = engine.run(inputs)
        outputs = [found[t] for t in model.main.outputs]
        outcome, words = "runs", ""
    except TflqError as error:
        lines = str(error).count("\n")
        outcome, words = ("refused", str(error)) if not lines else ("crash", f"{lines + 1} lines: {error}")
    except MemoryError as error:
        outcome, words = "memory", str(error)
    except Exception as error:
        outcome, words = "crash", _place(error)
    return outcome, words, time.perf_counter() - start, inputs, outputs


def _values(graph: Graph, t: int) -> Array:
    tensor = graph.tensors[t]
    shape, kind = (1, *tensor.shape), tensor.dtype.storage
    if tensor.size > 1 << 26:
        return np.zeros(shape, kind)
    rng = np.random.default_rng(t)
    if tensor.dtype.is_integer:
        return rng.integers(tensor.dtype.minimum, tensor.dtype.maximum, shape, kind, endpoint=True)
    if kind.kind == "O":
        return np.full(shape, b"text", object)
    return rng.normal(size=shape).astype(kind)


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f"{trace.tb_frame.f_code.co_filename.split('tflq/')[-1]}:{trace.tb_lineno}"
    return f"{type(error).__name__} at {where}: {error}"


def main() -> None:
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            content = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        with np.errstate(all="ignore"):
            reply = run(content)
        pickle.dump(reply, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
