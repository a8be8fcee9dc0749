"""Stands in for `ai_edge_litert.interpreter` and for `tf.lite` in an import line of scripts that run models.

    from ai_edge_litert.interpreter import Interpreter  ->  from tflq.lite import Interpreter
    from tensorflow import lite                         ->  from tflq import lite

What converts models has no part in it and says so when it is used.
"""

from __future__ import annotations

from tflq.errors import UnsupportedError
from tflq.lite import experimental as experimental
from tflq.tflite_interpreter.details import Delegate, OpResolverType, load_delegate
from tflq.tflite_interpreter.errors import also
from tflq.tflite_interpreter.interpreter import Interpreter
from tflq.tflite_interpreter.signature_runner import SignatureRunner

__all__ = ["Delegate", "Interpreter", "OpResolverType", "SignatureRunner", "experimental", "load_delegate"]

_OF_THE_CONVERTER = ("OpsSet", "Optimize", "RepresentativeDataset", "TFLiteConverter", "TargetSpec")


class _Elsewhere:
    """A name of tf.lite that tflq does not have: it may be imported, not used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *arguments: object, **options: object) -> None:  # noqa: ARG002
        self._refuse()

    def __getattr__(self, attribute: str) -> object:
        return self._refuse()

    @also(AttributeError)
    def _refuse(self) -> None:
        raise UnsupportedError(
            f"tflq.lite has no {self._name}: tflq runs and requantizes models, and TensorFlow makes them; "
            f"use tensorflow.lite.{self._name}"
        )


def __getattr__(name: str) -> object:
    """Return a name of the converter, which refuses when it is used."""
    if name in _OF_THE_CONVERTER:
        return _Elsewhere(name)
    raise AttributeError(f"module 'tflq.lite' has no attribute {name!r}")
