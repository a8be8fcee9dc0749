"""Holds floats of single operators to TFLite's: every difference must be one of the table of known differences."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.diagnosis.verify import verify
from tflq.graph import Array, Graph
from tflq.oracle import Oracle
from tflq.sampling import GivenSamples


def check_known(oracle: Oracle, graph: Graph, inputs: Sequence[Array]) -> None:
    """Assert that what differs from TFLite is within the bounds of the operator, its types and its attributes."""
    content = model_to_bytes(graph)
    model = model_from_bytes(content, "single operator")
    verdict = verify(model, content, GivenSamples(list(inputs)), oracle, state="independent")
    missing = [t.name for t in verdict.tensors if t.unavailable and t.index in model.main.outputs]
    assert not missing, f"TFLite returns no {missing}"
    unknown = [(t.name, t.unknown, t.difference) for t in verdict.compared if t.unknown or t.difference.mismatch]
    assert verdict.is_explained, f"{unknown}"
