"""The network's layers in tensorflow, with the variables that training changes, and their export."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

# tensorflow has no types
Tensor: TypeAlias = Any
Variable: TypeAlias = Any

_EPSILON = 1e-3
_MOMENTUM = 0.98
_RECTIFIED, _LINEAR = 1.41, 0.5


@dataclass
class TensorflowLayers:
    """`network.Layers` over float32 batches; normalizes by the batch's own statistics and keeps their average.

    Attributes:
        seed: of the first weights.
        variables: name -> variable; filled by the first call.
    """

    seed: int
    variables: dict[str, Variable] = field(default_factory=dict)

    @property
    def trainable(self) -> list[Variable]:
        """What the optimizer may change."""
        return [v for name, v in self.variables.items() if not name.endswith(("/mean", "/variance"))]

    def conv(
        self,
        name: str,
        x: Tensor,
        outputs: int,
        kernel: int = 3,
        stride: int = 1,
        *,
        relu: bool = True,
        norm: bool = False,
    ) -> Tensor:
        """See `network.Layers`."""
        weights = self._weights(name, (kernel, kernel, x.shape[-1], outputs), _RECTIFIED if relu else _LINEAR)
        y = tf.nn.conv2d(x, weights, stride, "SAME")
        y = self._normalize(name, y) if norm else y + self._variable(f"{name}/biases", np.zeros(outputs))
        return tf.nn.relu(y) if relu else y

    def dense(self, name: str, x: Tensor, outputs: int, *, relu: bool = True) -> Tensor:
        """See `network.Layers`."""
        weights = self._weights(name, (x.shape[-1], outputs), _RECTIFIED if relu else _LINEAR)
        y = x @ weights + self._variable(f"{name}/biases", np.zeros(outputs))
        return tf.nn.relu(y) if relu else y

    def add(self, a: Tensor, b: Tensor, *, relu: bool = False) -> Tensor:
        """See `network.Layers`."""
        return tf.nn.relu(a + b) if relu else a + b

    def pool(self, x: Tensor) -> Tensor:
        """See `network.Layers`."""
        return tf.nn.max_pool2d(x, 2, 2, "VALID")

    def upsample(self, x: Tensor) -> Tensor:
        """See `network.Layers`."""
        return tf.repeat(tf.repeat(x, 2, axis=1), 2, axis=2)

    def rows(self, x: Tensor, width: int) -> Tensor:
        """See `network.Layers`."""
        return tf.reshape(x, [tf.shape(x)[0], -1, width])

    def flat(self, x: Tensor) -> Tensor:
        """See `network.Layers`."""
        return tf.reshape(x, [-1, int(np.prod(x.shape[1:]))])

    def join(self, parts: list[Tensor]) -> Tensor:
        """See `network.Layers`."""
        return tf.concat(parts, axis=1)

    def softmax(self, name: str, x: Tensor) -> Tensor:  # noqa: ARG002
        """Return the logits: losses take these."""
        return x

    def sigmoid(self, x: Tensor) -> Tensor:
        """Return the logits: losses take these."""
        return x

    def export(self) -> dict[str, NDArray[np.float16]]:
        """Return weights [O, ...] and biases [O] of each layer, normalization folded in."""
        names = [name.removesuffix("/weights") for name in self.variables if name.endswith("/weights")]
        arrays = {}
        for name in names:
            weights, biases = self._folded(name)
            arrays[f"{name}/weights"] = np.moveaxis(weights, -1, 0).astype(np.float16)
            arrays[f"{name}/biases"] = biases.astype(np.float16)
        return arrays

    def _folded(self, name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        weights = self.variables[f"{name}/weights"].numpy()
        if f"{name}/mean" not in self.variables:
            return weights, self.variables[f"{name}/biases"].numpy()
        gamma, beta, mean, variance = (
            self.variables[f"{name}/{key}"].numpy() for key in ("gamma", "beta", "mean", "variance")
        )
        slope = gamma / np.sqrt(variance + _EPSILON)
        return weights * slope, beta - mean * slope

    def _normalize(self, name: str, y: Tensor) -> Tensor:
        channels = y.shape[-1]
        gamma = self._variable(f"{name}/gamma", np.ones(channels))
        beta = self._variable(f"{name}/beta", np.zeros(channels))
        mean, variance = tf.nn.moments(y, [0, 1, 2])
        for key, value in (("mean", mean), ("variance", variance)):
            kept = self._variable(f"{name}/{key}", np.zeros(channels) if key == "mean" else np.ones(channels))
            kept.assign(_MOMENTUM * kept + (1 - _MOMENTUM) * value)
        return (y - mean) * tf.math.rsqrt(variance + _EPSILON) * gamma + beta

    def _weights(self, name: str, shape: tuple[int, ...], gain: float) -> Variable:
        key = f"{name}/weights"
        if key not in self.variables:
            rng = np.random.default_rng([self.seed, len(self.variables)])
            self._variable(key, rng.normal(0, gain / np.sqrt(np.prod(shape[:-1])), shape))
        return self.variables[key]

    def _variable(self, name: str, start: NDArray[np.float64]) -> Variable:
        if name not in self.variables:
            self.variables[name] = tf.Variable(start.astype(np.float32), name=name.replace("/", "_"))
        return self.variables[name]
