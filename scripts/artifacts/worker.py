"""Converts models with the tflq that PYTHONPATH names: one request and one result per line.

A request is a JSON object on standard input: `checkout` (folder from which tflq must be imported), `model` (path of a
.tflite file) and `conversions` (pairs of a target and its settings). The result is a list with an object for each
conversion: `files` (name -> SHA-256), `tensors` (name -> digest of the values for SAMPLES random samples), `seconds` of
processor time, `refused` (class and message of the exception) if the conversion failed, and `unrun` if the samples
could not be run. Ranges of a float model are measured on random samples. The working directory is the model's folder:
artifacts contain the same path on both sides.

This file runs with both checkouts. It imports only functions that `tflq convert` calls. If one of them moves, import it
from either place.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import TypedDict

import numpy as np

import tflq
from tflq.api.calibrate import calibrate
from tflq.api.read_model import read_model
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.graph import ABSENT, Model

try:
    from tflq.parallel.executions import Execution, for_target
    from tflq.sampling import RandomSamples
except ImportError:  # a checkout before 0.2
    from tflq.analysis.executions import Execution, for_target  # type: ignore[import-not-found, no-redef]
    from tflq.analysis.inputs import RandomSamples  # type: ignore[import-not-found, no-redef]

CALIBRATION_SAMPLES, CALIBRATION_SEED = 4, 1
SAMPLES, SEED = 2, 2
SPELLINGS = {
    b"uantis": b"uantiz",
    b"ormalis": b"ormaliz",
    b"eighbour": b"eighbor",
    b"olour": b"olor",
    b"abelled": b"abeled",
    b"rtefact": b"rtifact",
    b"ecognis": b"ecogniz",
}
"""British stem -> American stem, for the texts of checkouts before 0.2."""


class Result(TypedDict, total=False):
    """Outcome of a conversion, an object of the returned list."""

    files: dict[str, str]
    tensors: dict[str, str]
    refused: str
    unrun: str
    seconds: float


def main() -> int:
    results_pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of tflq is passed to standard error
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        request = json.loads(line)
        if not Path(tflq.__file__).resolve().is_relative_to(Path(request["checkout"]).resolve()):
            sys.exit(f"tflq was imported from {tflq.__file__}, not from {request['checkout']}")
        results_pipe.write(json.dumps(convert_model(Path(request["model"]), request["conversions"])) + "\n")
        results_pipe.flush()
    return 0


def convert_model(path: Path, conversions: list[tuple[str, list[str]]]) -> list[Result]:
    os.chdir(path.parent)
    try:
        model = read_model(path.name)
        ranged = _calibrate(model)
    except Exception as error:
        return [Result(refused=_describe(error), seconds=0.0) for _ in conversions]
    results = []
    for target, settings in conversions:
        start = time.process_time()
        result = _convert(model, ranged, target, settings)
        results.append(Result(**result, seconds=time.process_time() - start))
    return results


def _calibrate(model: Model) -> Model:
    """Return the model with ranges; ranges of a float model are measured on random samples."""
    graph = model.main
    variables = [tensor for tensor in graph.tensors if not tensor.is_constant]
    if any(_quantization_of(tensor) is not None for tensor in variables):
        return calibrate(model)
    arrays = RandomSamples(graph, CALIBRATION_SAMPLES, CALIBRATION_SEED).take(0, CALIBRATION_SAMPLES)
    samples = dict(zip((graph.tensors[t].name for t in graph.inputs), arrays, strict=True))
    try:
        return calibrate(model, samples=samples)
    except Exception:
        return calibrate(model)


def _quantization_of(tensor: object) -> object:
    """Return a tensor's quantization in this checkout; checkouts before 0.2 spell the attribute `quantisation`."""
    return getattr(tensor, "quantization" if hasattr(tensor, "quantization") else "quantisation")


def _convert(model: Model, ranged: Model, name: str, assignments: list[str]) -> Result:
    try:
        target = find_target(name)
        execution = for_target(ranged.main, target, parse_settings(target.settings, assignments))
        artifacts = target.emit(execution.graph, ranged)
    except Exception as error:
        return Result(refused=_describe(error))
    result = Result(files={file: hashlib.sha256(_respell(data)).hexdigest() for file, data in artifacts.items()})
    try:
        result["tensors"] = _digest_tensors(execution, RandomSamples(model.main, SAMPLES, SEED))
    except Exception as error:
        result["unrun"] = _describe(error)
    return result


def _digest_tensors(execution: Execution, samples: RandomSamples) -> dict[str, str]:
    digests: dict[str, str] = {}
    written = [t for node in execution.graph.nodes for t in node.outputs if t != ABSENT]
    for chunk in execution.iterate(samples, written):
        for t, values in sorted(chunk.items()):
            name = _respell(execution.graph.tensors[t].name.encode()).decode()
            while name in digests:
                name += "'"
            array = np.ascontiguousarray(values)
            content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
            about = f"{array.dtype} {array.shape} ".encode()
            digests[name] = hashlib.sha256(about + content).hexdigest()[:16]
    return digests


def _respell(text: bytes) -> bytes:
    """Return a file or message in American spelling."""
    for british, american in SPELLINGS.items():
        text = text.replace(british, american)
    return text


def _describe(error: Exception) -> str:
    return _respell(f"{type(error).__name__}: {error}".encode()).decode()


if __name__ == "__main__":
    sys.exit(main())
