"""`tflq.Interpreter`: the interface of `tf.lite.Interpreter` on this project's engine."""

from __future__ import annotations

from tflq.tflite_interpreter.details import QuantizationParameters, TensorDetails
from tflq.tflite_interpreter.interpreter import Interpreter
from tflq.tflite_interpreter.signature_runner import SignatureRunner

__all__ = ["Interpreter", "QuantizationParameters", "SignatureRunner", "TensorDetails"]
