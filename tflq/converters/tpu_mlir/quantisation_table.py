"""The quantisation table: a line `name MODE` for each layer that does not run in INT8 (docs/tpu_mlir.md, 8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tflq.errors import FormatError

MODES = ("INT8", "F16", "F32")


def format_quantisation_table(modes: Mapping[str, str]) -> str:
    """Return the text of a table: layer -> mode."""
    return "\n".join(["# op_name   quantize_mode", *(f"{name} {mode}" for name, mode in modes.items()), ""])


def parse_quantisation_table(text: str, known: Collection[str] | None = None) -> dict[str, str]:
    """Read a table: layer -> mode; lines that begin with # are comments.

    Raises:
        FormatError: with the number of the line: another number of fields, an unknown mode or layer.
    """
    modes = {}
    for number, row in enumerate(text.splitlines(), 1):
        fields = row.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) != 2:
            raise FormatError(f"line {number}: found {len(fields)} fields, a line has 2: name MODE")
        name, mode = fields
        if mode not in MODES:
            raise FormatError(f"line {number}: mode '{mode}'; known are {', '.join(MODES)}")
        if known is not None and name not in known:
            raise FormatError(f"line {number}: the network has no layer '{name}'")
        modes[name] = mode
    return modes
