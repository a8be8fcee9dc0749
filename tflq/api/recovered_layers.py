"""Records of recovered layers in a model's metadata, as `tflq.recover` writes them.

Source: docs/guides/recover.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from tflq.graph import Model
from tflq.quoting import escape_unprintable

METADATA = "tflq.recovered"
"""Name of the metadata entry that records a recovery."""


@dataclass(frozen=True)
class RecoveredLayer:
    """Record of a layer; ratios are signal-to-noise ratios of the samples kept aside, in dB.

    Attributes:
        name: Name of the node.
        bits: Bits of the weights; None without weights that could be recovered.
        kept: "weights and bias", "weights", "bias" or "nothing".
        reason: Reason why weights were not changed; empty otherwise.
        plain_db: Ratio with rounding to nearest; None if it was not measured.
        bias_db: Ratio with only the bias changed; None if it was not measured.
        found_db: Ratio of the stored layer; None if it was not measured.
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
        """One line with the gain of each step, or with the reason why the layer was not changed."""
        bits = "" if self.bits is None else f", {self.bits} bits"
        head = f"{escape_unprintable(self.name)}{bits}"
        if self.kept == "nothing" or self.plain_db is None or self.found_db is None:
            return f"not recovered: {head}: {escape_unprintable(self.reason) or 'no reason is recorded'}"
        steps = [f"{self.plain_db:.1f} dB rounded to nearest"]
        bias = self.found_db if self.kept == "bias" else self.bias_db
        if bias is not None:
            steps.append(f"{bias - self.plain_db:+.1f} by the bias")
        if self.kept != "bias":
            steps.append(f"{self.found_db - (self.plain_db if bias is None else bias):+.1f} by the weights")
        return f"recovered: {head}: {', '.join(steps)}"


def recovered_layers(model: Model) -> tuple[RecoveredLayer, ...]:
    """Return the records of a file's recovered layers; empty without a readable entry."""
    content = model.metadata.get(METADATA)
    try:
        entry = json.loads(bytes(content))["recovered"] if content is not None else []
        return tuple(_layer(entry) for entry in entry)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return ()


def _layer(entry: dict[str, object]) -> RecoveredLayer:
    pair = entry["held_out_db"]
    if not isinstance(pair, list):
        raise TypeError
    plain, recovered = (None if v is None else float(v) for v in pair[:2])
    bits, bias = entry["bits"], entry["bias_db"]
    return RecoveredLayer(
        str(entry["name"]),
        None if bits is None else int(str(bits)),
        str(entry["kept"]),
        str(entry["reason"]),
        plain,
        None if bias is None else float(str(bias)),
        recovered,
    )
