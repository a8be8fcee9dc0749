"""What `tf.lite.experimental` has for those who run models."""

from __future__ import annotations

from tflq.tflite_interpreter.details import OpResolverType, load_delegate

__all__ = ["OpResolverType", "load_delegate"]
