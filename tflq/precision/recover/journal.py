"""What was found for each layer, kept as it comes: a file of JSON lines, so that interrupted work goes on there.

Each line: {"recovery": SHA-256, "layer": what was done, "shape": of the weights or null, "weights", "bias": float32 as
base64 or null}. Several recoveries can share a file. A last line without its end was cut off and counts for nothing.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tflq.errors import FormatError
from tflq.precision.recover.proposals import Constants, Recovered
from tflq.precision.recover.records import LayerRecovery
from tflq.precision.results_file import append_line, whole_lines
from tflq.quoting import json_text


class JournalFile:
    """What is known of one recovery, and where more of it is kept."""

    def __init__(self, path: Path, digest: str) -> None:
        """Read what there is.

        Args:
            path: the file; it is made with the first layer.
            digest: of all that the recovery depends on.

        Raises:
            FormatError: a line of another form.
            OutputError: the file cannot be read.
        """
        self._path, self._digest = path, digest
        self._known: dict[int, Recovered] = {}
        for number, line in enumerate(whole_lines(path), 1):
            try:
                fields = json.loads(line)
                if fields["recovery"] == digest:
                    found = _recovered(fields)
                    self._known[found.layer.index] = found
            except (ValueError, KeyError, TypeError, RecursionError):
                raise FormatError(
                    f"{path}: line {number}: is no layer of a recovery; name another file with --results, or correct "
                    f"the line"
                ) from None

    def find(self, index: int) -> Recovered | None:
        """Return what was kept for a node."""
        return self._known.get(index)

    def add(self, recovered: Recovered) -> None:
        """Append a layer; it is on its way to the disk when this returns.

        Raises:
            OutputError: the file cannot be written.
        """
        constants = recovered.constants
        layer = {
            key: [repr(v) for v in value]
            if isinstance(value, tuple)
            else repr(value)
            if isinstance(value, float)
            else value
            for key, value in asdict(recovered.layer).items()
        }
        fields = {
            "recovery": self._digest,
            "layer": layer,
            "shape": None if constants is None else list(constants[0].shape),
            "weights": None if constants is None else _text(constants[0]),
            "bias": None if constants is None else _text(constants[1]),
        }
        append_line(self._path, f"{json_text(fields, None)}\n".encode())


def _plain(value: object) -> object:
    """Return a value as JSON has it; floats as texts, since some are NaN."""
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return repr(value) if isinstance(value, float) else value


def _recovered(fields: dict[str, object]) -> Recovered:
    given = fields["layer"]
    if not isinstance(given, dict):
        raise TypeError
    pairs = {key: (float(given[key][0]), float(given[key][1])) for key in ("fit_db", "held_out_db")}
    numbers = {key: float(given[key]) for key in ("changed", "bias_steps", "bias_db")}
    layer = LayerRecovery(**{**given, **pairs, **numbers})
    shape = fields["shape"]
    constants: Constants | None = None
    if isinstance(shape, list):
        constants = (_array(fields["weights"]).reshape(shape), _array(fields["bias"]))
    return Recovered(layer, constants)


def _text(array: NDArray[np.float32]) -> str:
    return base64.b64encode(np.ascontiguousarray(array, "<f4").tobytes()).decode()


def _array(text: object) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(str(text), validate=True), "<f4").astype(np.float32)
