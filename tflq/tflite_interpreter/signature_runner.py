"""Signatures as functions of named arrays."""

from __future__ import annotations

import numpy as np

from tflq.errors import InputError
from tflq.graph import Array, Signature
from tflq.tflite_interpreter.details import TensorDetails
from tflq.tflite_interpreter.subgraph import Subgraph


class SignatureRunner:
    """Calls one signature: `runner(x=...)` returns {name: value}."""

    def __init__(self, subgraph: Subgraph, signature: Signature) -> None:
        self._signature = signature
        self._subgraph = subgraph

    def __call__(self, **inputs: Array) -> dict[str, Array]:
        """Run once; an input whose shape differs from the present one resizes it.

        Raises:
            InputError: names that do not match, or values that do not fit.
        """
        known = self._signature.inputs
        if inputs.keys() != known.keys():
            raise InputError(f"signature '{self._signature.key}' takes {sorted(known)}, found {sorted(inputs)}")
        arrays = {known[name]: np.asarray(value) for name, value in inputs.items()}
        for t, value in arrays.items():
            self._subgraph.resize(t, value.shape, strict=False)
        if not self._subgraph.allocated:
            self._subgraph.allocate()
        for t, value in arrays.items():
            self._subgraph.set(t, value)
        self._subgraph.invoke()
        return {name: self._subgraph.get(t).copy() for name, t in sorted(self._signature.outputs.items())}

    def get_input_details(self) -> dict[str, TensorDetails]:
        """Return name -> details of each input."""
        return {name: self._subgraph.details(t) for name, t in sorted(self._signature.inputs.items())}

    def get_output_details(self) -> dict[str, TensorDetails]:
        """Return name -> details of each output."""
        return {name: self._subgraph.details(t) for name, t in sorted(self._signature.outputs.items())}
