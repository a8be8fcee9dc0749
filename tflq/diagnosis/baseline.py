"""Baselines of frozen runs: digests of every tensor, and the changes of a later run."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tflq.errors import InputError
from tflq.files import read_bytes
from tflq.graph import Array
from tflq.parallel.executions import Execution
from tflq.quoting import json_text
from tflq.sampling import Samples

FORMAT = 1
"""Version of the file's layout."""


@dataclass(frozen=True)
class FrozenTensor:
    """One tensor over all samples.

    Attributes:
        name: unique in the graph.
        dtype: Dtype of the values.
        shape: Shape of a sample; () if shapes differ between samples.
        digest: SHA-256 over all samples in order, in hexadecimal.
        samples: CRC-32 of each sample, to name the first that changes.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    digest: str
    samples: tuple[int, ...]


@dataclass(frozen=True)
class Baseline:
    """A frozen run.

    Attributes:
        version: Version of tflq that froze the run.
        run: Settings of the run by JSON key; `tflq.api.baseline` reads and writes them.
        files: SHA-256 of each file that went into the run, by its path as seen from the baseline's folder.
        tensors: Digests of the tensors in order of execution.
    """

    version: str
    run: Mapping[str, object]
    files: Mapping[str, str]
    tensors: tuple[FrozenTensor, ...]


@dataclass(frozen=True)
class Change:
    """Difference between one tensor and its frozen digest.

    Attributes:
        tensor: Name of the tensor.
        what: Description of the change.
    """

    tensor: str
    what: str


def freeze(
    execution: Execution, samples: Samples, names: Mapping[int, str], progress: Callable[[int], object] = lambda _: None
) -> tuple[FrozenTensor, ...]:
    """Run the samples and digest the named tensors; the result does not depend on how samples are chunked.

    Args:
        execution: Model to run.
        samples: Samples in the encoding of the execution's source.
        names: Names of the tensors to digest, by index, in order of execution.
        progress: called with the number of samples just finished.
    """
    digests = {t: hashlib.sha256() for t in names}
    sums: dict[int, list[int]] = {t: [] for t in names}
    shapes: dict[int, set[tuple[int, ...]]] = {t: set() for t in names}
    types: dict[int, str] = {}
    for chunk in execution.iterate(samples, tuple(names)):
        for t in names:
            for row in chunk[t]:
                sample = np.asarray(row)
                content = _content(sample)
                digests[t].update(content)
                sums[t].append(zlib.crc32(content))
                shapes[t].add(sample.shape)
                types[t] = str(sample.dtype)
        progress(len(next(iter(chunk.values()))) if chunk else 0)
    return tuple(
        FrozenTensor(
            name,
            types.get(t, ""),
            next(iter(shapes[t])) if len(shapes[t]) == 1 else (),
            digests[t].hexdigest(),
            tuple(sums[t]),
        )
        for t, name in names.items()
    )


def changes(frozen: Sequence[FrozenTensor], now: Sequence[FrozenTensor]) -> tuple[Change, ...]:
    """Return the changes: tensors of the frozen run in its order, then tensors that are new."""
    present = {tensor.name: tensor for tensor in now}
    known = {tensor.name for tensor in frozen}
    changed = [Change(t.name, what) for t in frozen if (what := _change(t, present.get(t.name))) is not None]
    return (*changed, *(Change(t.name, "is new") for t in now if t.name not in known))


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file, or of a folder's files by name and content.

    Raises:
        InputError: there is none, or it cannot be read.
    """
    digest = hashlib.sha256()
    if path.is_dir():
        for file in sorted(p for p in path.iterdir() if p.is_file()):
            digest.update(file.name.encode() + b"\0" + hashlib.sha256(read_bytes(file)).digest())
    else:
        digest.update(read_bytes(path))
    return digest.hexdigest()


def baseline_bytes(baseline: Baseline) -> bytes:
    """Return a baseline as JSON."""
    report = {
        "tflq_baseline": FORMAT,
        "tflq": baseline.version,
        "run": baseline.run,
        "files": baseline.files,
        "tensors": [
            {
                "name": t.name,
                "dtype": t.dtype,
                "shape": list(t.shape),
                "sha256": t.digest,
                "crc32": base64.b64encode(np.array(t.samples, "<u4").tobytes()).decode("ascii"),
            }
            for t in baseline.tensors
        ],
    }
    return (json_text(report) + "\n").encode()


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        InputError: the file is missing, is no baseline, or lacks a key.
    """
    try:
        report = json.loads(bytes(read_bytes(path)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no JSON: {error}") from None
    if not isinstance(report, dict) or report.get("tflq_baseline") != FORMAT:
        version = report.get("tflq_baseline") if isinstance(report, dict) else None
        raise InputError(f"{path}: is no baseline: tflq_baseline is {version}, not {FORMAT}; write one with --freeze")
    try:
        tensors = tuple(_tensor(item) for item in report["tensors"])
        return Baseline(str(report["tflq"]), dict(report["run"]), dict(report["files"]), tensors)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: is damaged: {type(error).__name__} {error}; write it again with --freeze") from None


def _tensor(item: Mapping[str, object]) -> FrozenTensor:
    shape = item["shape"]
    if not isinstance(shape, list) or not all(isinstance(n, int) for n in shape):
        raise ValueError(f"shape {shape!r}")
    sums = np.frombuffer(base64.b64decode(str(item["crc32"]), validate=True), "<u4")
    return FrozenTensor(
        str(item["name"]), str(item["dtype"]), tuple(shape), str(item["sha256"]), tuple(int(s) for s in sums)
    )


def _content(sample: Array) -> bytes:
    """Return the bytes of a sample to digest: its shape, then its values in little-endian order; strings as text."""
    head = repr(sample.shape).encode()
    if sample.dtype.kind == "O":
        return head + b"\0".join(str(item).encode() for item in sample.reshape(-1).tolist())
    return head + np.ascontiguousarray(sample).astype(sample.dtype.newbyteorder("<"), copy=False).tobytes()


def _change(before: FrozenTensor, now: FrozenTensor | None) -> str | None:
    if now is None:
        return "is gone"
    if (before.dtype, before.shape) != (now.dtype, now.shape):
        return f"was {before.dtype}{list(before.shape)}, is {now.dtype}{list(now.shape)}"
    if len(before.samples) != len(now.samples):
        return f"had {len(before.samples)} samples, has {len(now.samples)}"
    if before.digest == now.digest:
        return None
    differing = [n for n, (a, b) in enumerate(zip(before.samples, now.samples, strict=True)) if a != b]
    first = f", the first is number {differing[0]}" if differing else ""
    return f"{len(differing) or 'some'} of {len(now.samples)} samples differ{first}"
