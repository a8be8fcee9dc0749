"""What a recovered file says of its layers: the entry of its metadata that `tflq.recover` writes.

Source: docs/guides/recover.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from tflq.graph import Model
from tflq.quoting import shown

METADATA = "tflq.recovered"
"""Name of the metadata of a recovered file that says how it was made."""


@dataclass(frozen=True)
class RecoveredLayer:
    """A layer, as its file tells; ratios are of its result on the samples kept aside, in dB.

    Attributes:
        name: of its node.
        bits: of its weights; None where the target has none that could be recovered.
        kept: "weights and bias", "weights", "bias" or "nothing".
        reason: why nothing, or no weights; else empty.
        plain_db: rounded to nearest; None where it was not measured.
        bias_db: with a new bias alone; None where it was not measured.
        found_db: as the file has it; None where it was not measured.
    """

    name: str
    bits: int | None
    kept: str
    reason: str
    plain_db: float | None
    bias_db: float | None
    found_db: float | None

    @property
    def text(self) -> str:
        """What each step took away of the error, or why the layer was left, in a line."""
        bits = "" if self.bits is None else f", {self.bits} bits"
        head = f"{shown(self.name)}{bits}"
        if self.kept == "nothing" or self.plain_db is None or self.found_db is None:
            return f"not recovered: {head}: {shown(self.reason) or 'no reason is told'}"
        steps = [f"{self.plain_db:.1f} dB rounded to nearest"]
        bias = self.found_db if self.kept == "bias" else self.bias_db
        if bias is not None:
            steps.append(f"{bias - self.plain_db:+.1f} by the bias")
        if self.kept != "bias":
            steps.append(f"{self.found_db - (self.plain_db if bias is None else bias):+.1f} by the weights")
        return f"recovered: {head}: {', '.join(steps)}"


def recovered_layers(model: Model) -> tuple[RecoveredLayer, ...]:
    """Return what a file says of its recovered layers; nothing where it says nothing that can be read."""
    content = model.metadata.get(METADATA)
    try:
        found = json.loads(bytes(content))["recovered"] if content is not None else []
        return tuple(_layer(entry) for entry in found)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return ()


def _layer(entry: dict[str, object]) -> RecoveredLayer:
    pair = entry["held_out_db"]
    if not isinstance(pair, list):
        raise TypeError
    plain, found = (None if v is None else float(v) for v in pair[:2])
    bits, bias = entry["bits"], entry["bias_db"]
    return RecoveredLayer(
        str(entry["name"]),
        None if bits is None else int(str(bits)),
        str(entry["kept"]),
        str(entry["reason"]),
        plain,
        None if bias is None else float(str(bias)),
        found,
    )
