"""The arena of a model in TensorFlow Lite Micro, as its RecordingMicroAllocator reports it.

The package prints its figures on standard error, so that a separate process runs the model once:
`python -m tflq.oracle.micro_arena SIZE` reads the file from standard input.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from dataclasses import dataclass

import numpy as np

from tflq.converters.tflite import read_model
from tflq.errors import OracleError
from tflq.graph.arena import arena_of
from tflq.oracle.package import INTERPRETERS, MICRO, find_package, installed_version

_LINE = re.compile(r"Arena allocation (total|head|tail) (\d+) bytes")
_SPARE_BYTES = 1 << 20
_TIMEOUT_S = 120


@dataclass(frozen=True)
class MicroArena:
    """Bytes that MicroInterpreter uses on this machine, with pointers of 8 bytes.

    Attributes:
        version: Version of the package tflite-micro.
        total: Size of the arena.
        head: Activations and scratch buffers.
        tail: Tensors, nodes and the kernels' buffers, which live as long as the interpreter.
    """

    version: str
    total: int
    head: int
    tail: int


def measure_arena(content: bytes) -> MicroArena:
    """Run a model once on zeros and return the arena that it uses.

    Raises:
        MissingExtraError: tflite-micro is not installed.
        OracleError: The package refuses the model.
    """
    find_package(MICRO)
    size = _SPARE_BYTES + 4 * (len(content) + arena_of(read_model(content).main).planned_bytes)
    command = [sys.executable, "-m", __name__, str(size)]
    try:
        done = subprocess.run(command, input=content, capture_output=True, check=False, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise OracleError(f"tflite-micro: no result within {_TIMEOUT_S} s") from None
    text = done.stderr.decode("utf-8", "replace")
    figures = {part: int(value) for part, value in _LINE.findall(text)}
    if done.returncode or len(figures) != 3:
        raise OracleError(f"tflite-micro: {text.strip().splitlines()[-1] if text.strip() else 'no figures'}")
    return MicroArena(done.stdout.decode().strip(), **figures)


def main(size: int) -> None:
    """Run the model of standard input and let the package print its figures."""
    runtime = importlib.import_module(INTERPRETERS[MICRO])
    content = sys.stdin.buffer.read()
    interpreter = runtime.Interpreter.from_bytes(content, arena_size=size)
    for place, t in enumerate((graph := read_model(content).main).inputs):
        interpreter.set_input(np.zeros(graph.tensors[t].shape, graph.tensors[t].dtype.storage), place)
    interpreter.invoke()
    interpreter.print_allocations()
    print(installed_version(MICRO))  # noqa: T201 - the reply to the parent process


if __name__ == "__main__":
    main(int(sys.argv[1]))
