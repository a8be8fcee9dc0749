"""GAP9's specification and the schema of the file that its targets write, as data."""

from __future__ import annotations

from tflq.schemas import Json, read_json


def specification() -> dict[str, Json]:
    """Return bits, symmetry, granularity, multiplier format, rounding and limits."""
    return read_json(__name__)


def quantization_schema() -> dict[str, Json]:
    """Return the JSON schema (draft 2020-12) of quantization.json."""
    return read_json(__name__, "quantization.schema.json")
