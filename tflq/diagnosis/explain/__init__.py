"""Explains one number: every step from the inputs, weights and bias to the stored value, as its kernel ran."""

from __future__ import annotations

from tflq.diagnosis.explain.explanation import Explainer, Explanation, explain_constant
from tflq.diagnosis.explain.side_by_side import Pair, SideBySide, side_by_side
from tflq.diagnosis.explain.steps import Step, Value

__all__ = ["Explainer", "Explanation", "Pair", "SideBySide", "Step", "Value", "explain_constant", "side_by_side"]
