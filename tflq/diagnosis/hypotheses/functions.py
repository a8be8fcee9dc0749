"""A function of one operand computed as another one: hard forms, other slopes, other bases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from tflq.arrays import Doubles
from tflq.diagnosis.compare.isolated import encode_reals
from tflq.diagnosis.hypotheses.hypothesis import Prediction
from tflq.diagnosis.hypotheses.suspect import LINEAR, Suspect
from tflq.graph import Array
from tflq.parallel.executions import real_values

Function = Callable[[Doubles], Doubles]


def _sigmoid(x: Doubles) -> Doubles:
    return np.asarray(1 / (1 + np.exp(-x)))


def _gelu_tanh(x: Doubles) -> Doubles:
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def _erf(x: Doubles) -> Doubles:
    """Abramowitz and Stegun 7.1.26, to 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return np.asarray(np.sign(x) * (1 - series * np.exp(-x * x)))


def _leak(slope: float, x: Doubles) -> Doubles:
    return np.where(x > 0, x, slope * x)


FUNCTIONS: dict[str, Function] = {
    "x": lambda x: x,
    "ReLU": lambda x: np.maximum(x, 0),
    "ReLU6": lambda x: np.clip(x, 0, 6),
    "the sigmoid": _sigmoid,
    "tanh(x)": np.tanh,
    "clip(x/6 + 1/2, 0, 1)": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "clip(x/5 + 1/2, 0, 1)": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "clip(x/4 + 1/2, 0, 1)": lambda x: np.clip(0.25 * x + 0.5, 0, 1),
    "clip(x, -1, 1)": lambda x: np.clip(x, -1, 1),
    "x / (1 + |x|)": lambda x: x / (1 + np.abs(x)),
    "hard swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "x * sigmoid(x)": lambda x: x * _sigmoid(x),
    "x * sigmoid(1.702 x)": lambda x: x * _sigmoid(1.702 * x),
    "GELU": lambda x: 0.5 * x * (1 + _erf(x / np.sqrt(2))),
    "GELU by tanh": _gelu_tanh,
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "exp(x)": np.exp,
    "2^x": np.exp2,
    "softplus": lambda x: np.logaddexp(0, x),
    "|x|": np.abs,
    "x^2": np.square,
    **{f"leaky ReLU of slope {a:g}": partial(_leak, a) for a in (0.01, 0.1, 0.125, 0.2, 0.25, 0.3, 0.5)},
}
"""Functions by name: every activation of the schema and its usual cheap forms."""
_OWN = {"logistic": "the sigmoid", "tanh": "tanh(x)", "hard_swish": "hard swish", "gelu": "GELU", "elu": "ELU"}
_FACTORS = (("half", 0.5), ("twice", 2.0), ("a quarter of", 0.25), ("4 times", 4.0))
_BASES = (("2", np.log(2)), ("10", np.log(10)))


def function(s: Suspect) -> Iterator[Prediction]:
    """G = encode(f(decode(x))) for another function f; operators of one operand of the result's shape."""
    real = _operand(s)
    if real is None or s.operator in LINEAR or "softmax" in s.operator:
        return
    for name, f in FUNCTIONS.items():
        yield Prediction(f"function computed is {name}, not {s.operator}", _encode(s, f(real)))
    own = FUNCTIONS.get(_OWN.get(s.operator, ""))
    for words, k in _FACTORS if own is not None else ():
        assert own is not None
        yield Prediction(f"function reads {words} its input", _encode(s, own(real * k)))


def softmax_base(s: Suspect) -> Iterator[Prediction]:
    """G = encode(b^(x - max) / sum) for base 2 or 10 in place of e."""
    real = _operand(s)
    if real is None or "softmax" not in s.operator:
        return
    beta = s.graph.nodes[s.main].attributes.get("beta")
    x = (real - real.max(axis=-1, keepdims=True)) * (float(beta) if isinstance(beta, (int, float)) and beta else 1.0)
    for base, factor in _BASES:
        powers = np.exp(x * factor)
        yield Prediction(
            f"softmax uses powers of {base}, not of e", _encode(s, powers / powers.sum(axis=-1, keepdims=True))
        )
    powers = np.exp(x)
    yield Prediction("softmax is not divided by its sum", _encode(s, powers))


def _operand(s: Suspect) -> Doubles | None:
    """Return the real values of the only computed operand, if it has the result's shape."""
    if len(s.inputs) != 1 or len(s.nodes) != 1:
        return None
    t = s.inputs[0]
    x = s.values[t]
    if x.shape[1:] != s.got.shape[1:]:
        return None
    if x.dtype.kind != "f" and s.encoding(t) is None:
        return None
    return real_values(x, s.graph.tensors[t])


def _encode(s: Suspect, real: Doubles) -> Array | None:
    """Return floating-point values in the result's encoding, NaN as 0."""
    real = np.nan_to_num(np.broadcast_to(real, s.got.shape))
    if s.got.dtype.kind == "f":
        return real.astype(s.got.dtype)
    return None if s.encoding(s.tensor) is None else encode_reals(real, s.graph.tensors[s.tensor])
