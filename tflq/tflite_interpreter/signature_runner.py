"""Signatures as functions of named arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflq.errors import InputError, OptionError
from tflq.graph import Array
from tflq.tflite_interpreter.details import TensorDetails
from tflq.tflite_interpreter.errors import also

if TYPE_CHECKING:
    from tflq.tflite_interpreter.interpreter import Interpreter


class SignatureRunner:
    """Calls one signature: `runner(x=...)` returns {name: value}."""

    @also(ValueError)
    def __init__(self, interpreter: Interpreter | None = None, signature_key: str | None = None) -> None:
        """Find the signature.

        Raises:
            OptionError: no interpreter or key is given, or the model has no such signature; also a ValueError.
        """
        if not interpreter:
            raise OptionError("no interpreter is given")
        found = [s for s in interpreter.model.signatures if s.key == signature_key]
        if not found:
            keys = ", ".join(s.key for s in interpreter.model.signatures) or "none"
            raise OptionError(f"signature {signature_key!r} is not one of the model's signatures: {keys}")
        self._signature = found[0]
        self._subgraph = interpreter.subgraph(found[0].graph)

    @also(ValueError)
    def __call__(self, **inputs: Array) -> dict[str, Array]:
        """Run once; an input whose shape differs from the present one resizes it.

        Raises:
            InputError: names that do not match, or values that do not fit; also a ValueError, and an AttributeError
                where a value is no array.
        """
        known = self._signature.inputs
        if inputs.keys() != known.keys():
            raise InputError(f"signature '{self._signature.key}' takes {sorted(known)}, found {sorted(inputs)}")
        for name, value in inputs.items():
            self._subgraph.resize(known[name], _array(name, value).shape, strict=False)
        with also(RuntimeError):
            self._subgraph.allocate()
        for name, value in inputs.items():
            self._subgraph.set(known[name], value)
        with also(RuntimeError):
            self._subgraph.invoke()
        return {name: self._subgraph.get(t).copy() for name, t in sorted(self._signature.outputs.items())}

    def get_input_details(self) -> dict[str, TensorDetails]:
        """Return name -> details of each input."""
        return {name: self._subgraph.details(t) for name, t in sorted(self._signature.inputs.items())}

    def get_output_details(self) -> dict[str, TensorDetails]:
        """Return name -> details of each output."""
        return {name: self._subgraph.details(t) for name, t in sorted(self._signature.outputs.items())}


@also(AttributeError)
def _array(name: str, value: Array) -> Array:
    if not hasattr(value, "shape"):
        raise InputError(f"input '{name}' is {type(value).__name__}; it must be an array: np.asarray makes it one")
    return value
