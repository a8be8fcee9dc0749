"""Random Keras networks with weights of unequal channels, as float or int8 .tflite files; a seed, the same files.

Needs tensorflow. Each network is one of the families below with random widths, kernels, strides and activations.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

Value = Any  # a tensor of Keras


def keras() -> Any:  # noqa: ANN401 - a module without types
    """Keras, imported where it is first needed."""
    return import_module("keras")


class Drawer:
    """Keras layers whose every choice comes from one generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.layers = rng, keras().layers

    def pick(self, *choices: Any) -> Any:  # noqa: ANN401 - any choice
        """One of them."""
        return choices[int(self.rng.integers(len(choices)))]

    def activation(self, x: Value) -> Value:
        """One of those that Keras' own applications have."""
        name = self.pick(
            "relu", "relu", "relu6", "silu", "hard_silu", "leaky", "elu", "sigmoid", "tanh", "prelu", "gelu"
        )
        return self.activate(x, name)

    def activate(self, x: Value, name: str) -> Value:
        """The activation of this name."""
        if name == "leaky":
            return self.layers.LeakyReLU(negative_slope=self.pick(0.1, 0.3))(x)
        if name == "prelu":
            return self.layers.PReLU(shared_axes=[1, 2])(x) if len(x.shape) == 4 else self.layers.PReLU()(x)
        return self.layers.Activation(name)(x)

    def conv(self, x: Value, width: int, kernel: int = 3, stride: int = 1, name: str | None = None) -> Value:
        """Convolution, perhaps with batch normalization, and its activation ("" for none)."""
        padding, bias = self.pick("same", "same", "valid" if min(x.shape[1:3]) > 6 else "same"), self.pick(True, False)
        y = self.layers.Conv2D(width, kernel, stride, padding, use_bias=bias)(x)
        y = self.layers.BatchNormalization()(y) if self.rng.random() < 0.5 else y
        return self.activation(y) if name is None else self.activate(y, name) if name else y

    def depthwise(self, x: Value, stride: int = 1) -> Value:
        """Depthwise convolution, batch normalization, activation."""
        y = self.layers.DepthwiseConv2D(self.pick(3, 5), stride, "same", use_bias=False)(x)
        return self.activation(self.layers.BatchNormalization()(y))

    def head(self, x: Value) -> Value:
        """Pooling and fully connected layers."""
        pool = self.pick("mean", "keep", "max", "flatten")
        if pool == "flatten":
            x = self.layers.Flatten()(self.layers.AveragePooling2D(2)(x))
        elif pool == "max":
            x = self.layers.GlobalMaxPooling2D()(x)
        else:
            x = self.layers.GlobalAveragePooling2D(keepdims=pool == "keep")(x)
            x = self.layers.Flatten()(x) if pool == "keep" else x
        x = self.layers.Dense(self.pick(8, 12), activation=self.pick("relu", None, "tanh"))(x)
        return self.layers.Dense(5, activation=self.pick("softmax", None, "sigmoid"))(x)


def residual(d: Drawer, x: Value) -> Value:
    """Sums, before or behind the activation."""
    a = d.conv(x, 8)
    for _ in range(d.pick(1, 2)):
        b = d.layers.Conv2D(8, d.pick(1, 3), padding="same")(
            d.layers.Conv2D(8, 3, padding="same", activation="relu")(a)
        )
        a = d.layers.Add()([a, b])
        a = d.activation(a) if d.rng.random() < 0.7 else a
    return d.head(a)


def preactivated(d: Drawer, x: Value) -> Value:
    """Batch normalization that no convolution takes: behind sums, pools and joins."""
    a = d.conv(x, 8, name="")
    for _ in range(d.pick(1, 2)):
        b = d.layers.Activation("relu")(d.layers.BatchNormalization()(a))
        b = d.layers.Conv2D(8, 3, padding="same")(b)
        a = (
            d.pick(d.layers.Add, d.layers.Concatenate)()([a, b])
            if a.shape == b.shape
            else d.layers.Concatenate()([a, b])
        )
    a = d.layers.BatchNormalization()(d.pick(d.layers.MaxPooling2D, d.layers.AveragePooling2D)(2)(a))
    return d.head(d.activation(a))


def inverted(d: Drawer, x: Value) -> Value:
    """MobileNet's blocks, with squeeze and excitation or without."""
    a = d.conv(x, 8, stride=2)
    for _ in range(d.pick(1, 2)):
        b = d.depthwise(d.conv(a, 16, 1), d.pick(1, 1, 2))
        if d.rng.random() < 0.5:
            gate = d.layers.GlobalAveragePooling2D(keepdims=True)(b)
            gate = d.layers.Conv2D(4, 1, activation=d.pick("relu", "silu"))(gate)
            gate = d.layers.Conv2D(16, 1, activation=d.pick("sigmoid", "hard_sigmoid"))(gate)
            b = d.layers.Multiply()([b, gate])
        b = d.conv(b, 8, 1, name="")
        a = d.layers.Add()([a, b]) if a.shape == b.shape else b
    return d.head(a)


def inception(d: Drawer, x: Value) -> Value:
    """Branches that are joined."""
    a = d.conv(x, 8)
    same = [d.layers.Conv2D(6, k, padding="same", activation=d.pick("relu", None))(a) for k in (1, 3)]
    pool = d.pick(d.layers.MaxPooling2D, d.layers.AveragePooling2D)(3, 1, "same")(a)
    a = d.layers.Concatenate()([*same, pool, *([a] if d.rng.random() < 0.3 else [])])
    return d.head(d.conv(a, 8) if d.rng.random() < 0.5 else a)


def unet(d: Drawer, x: Value) -> Value:
    """Down, up, and a join."""
    a = d.layers.Conv2D(6, 3, padding="same", activation=d.pick("relu", "silu"))(x)
    b = d.conv(d.layers.MaxPooling2D()(a), 8)
    b = d.layers.Conv2D(8, 3, padding="same")(d.layers.MaxPooling2D(2)(a)) if b.shape[1] * 2 != a.shape[1] else b
    up = d.pick("nearest", "bilinear", "deconv")
    if up == "deconv":
        u = d.layers.Conv2DTranspose(6, d.pick(2, 3, 4), 2, "same", activation=d.pick("relu", None))(b)
    else:
        u = d.layers.UpSampling2D(2, interpolation=up)(b)
    y = d.layers.Conv2D(6, 3, padding="same", activation="relu")(d.layers.Concatenate()([u, a]))
    return d.layers.Conv2D(3, 1, activation=d.pick("sigmoid", None))(y)


def elementwise(d: Drawer, x: Value) -> Value:
    """Sums, differences, products, extremes of branches and of constants."""
    found = [d.conv(x, 8, name=d.pick("", "relu", "tanh", "sigmoid")) for _ in range(3)]
    size = min(v.shape[1] for v in found)
    found = [v[:, :size, :size, :] if v.shape[1] != size else v for v in found]
    for _ in range(d.pick(2, 3, 4)):
        a, b = d.pick(*found), d.pick(*found)
        kind = d.pick("add", "sub", "mul", "max", "min", "scale", "shift", "rescale", "conv")
        layer = {"add": d.layers.Add, "sub": d.layers.Subtract, "mul": d.layers.Multiply, "max": d.layers.Maximum}
        if kind in layer or kind == "min":
            found.append((layer.get(kind) or d.layers.Minimum)()([a, b]))
        elif kind == "conv":
            found.append(d.layers.Conv2D(8, d.pick(1, 3), padding="same", activation=d.pick(None, "relu"))(a))
        else:
            scale = 1.0 if kind == "shift" else float(d.rng.normal())
            offset = 0.0 if kind == "scale" else float(d.rng.normal())
            found.append(d.layers.Rescaling(scale, offset)(a))
    return [d.layers.Conv2D(4, 3)(found[-1]), d.layers.Conv2D(3, 1)(found[-2])]


def sequence(d: Drawer, x: Value) -> Value:
    """One axis of time."""
    a = d.layers.Reshape((x.shape[1] * x.shape[2], x.shape[3]))(x)
    for width in (8, 12)[: d.pick(1, 2)]:
        a = d.layers.Conv1D(width, d.pick(3, 5), d.pick(1, 2), d.pick("same", "valid"), activation="relu")(a)
    a = d.layers.MaxPooling1D(2)(a) if d.rng.random() < 0.5 else a
    a = d.layers.GlobalAveragePooling1D()(a) if d.rng.random() < 0.5 else d.layers.Flatten()(a)
    return d.layers.Dense(5, activation=d.pick("softmax", None))(a)


def autoencoder(d: Drawer, x: Value) -> Value:
    """Fully connected layers."""
    a = d.layers.Flatten()(x)
    for width in (32, d.pick(4, 8), 32):
        a = d.layers.Dense(width)(a)
        a = d.layers.BatchNormalization()(a) if d.rng.random() < 0.5 else a
        a = d.activate(a, d.pick("relu", "relu6", "tanh", "elu", "leaky"))
    return d.layers.Dense(10)(a)


def wide(d: Drawer, x: Value) -> Value:
    """Fully connected layers whose inputs blocks of 256 divide; two of them read one tensor."""
    a = d.layers.Flatten()(x)
    for width in (256, d.pick(256, 512)):
        a = d.activate(d.layers.Dense(width, use_bias=d.pick(True, False))(a), d.pick("relu", "tanh", "gelu"))
    b = d.layers.Dense(256)(a)
    return d.layers.Dense(7, activation=d.pick("softmax", None))(d.layers.Add()([b, d.layers.Dense(256)(a)]))


def large(d: Drawer, x: Value) -> Value:
    """Layers of every kind, of more weights than 1024 and of fewer."""
    a = d.conv(d.conv(x, d.pick(8, 16)), d.pick(12, 16))
    a = d.layers.Conv2D(d.pick(64, 128), 1)(d.layers.MaxPooling2D(4)(a))
    a = d.activation(d.layers.DepthwiseConv2D(d.pick(3, 5), padding="same")(a))
    a = d.layers.Conv2DTranspose(d.pick(4, 8), 3, 2, "same", activation=d.pick("relu", None))(a)
    a = d.layers.Dense(d.pick(16, 200), activation=d.pick("relu", "tanh"))(d.layers.Flatten()(a))
    return d.layers.Dense(d.pick(5, 70), activation=d.pick("softmax", None))(a)


def normalized(d: Drawer, x: Value) -> Value:
    """ConvNeXt's block."""
    a = d.layers.Conv2D(8, 4, 4)(x)
    b = d.layers.LayerNormalization()(d.layers.DepthwiseConv2D(3, padding="same")(a))
    b = d.layers.Dense(16, activation=d.pick("gelu", "relu"))(b)
    a = d.layers.Add()([a, d.layers.Dense(8)(b)])
    return d.head(a)


def attention(d: Drawer, x: Value) -> Value:
    """Products of activations and a softmax of rows."""
    a = d.layers.Reshape((x.shape[1], x.shape[2] * x.shape[3]))(x)
    a = d.layers.Dense(8)(a)
    b = d.layers.Attention(use_scale=False)([d.layers.Dense(8)(a), d.layers.Dense(8)(a)])
    a = d.layers.Add()([a, b])
    a = d.layers.LayerNormalization()(a) if d.rng.random() < 0.5 else a
    return d.layers.Dense(5, activation=d.pick("softmax", None))(d.layers.GlobalAveragePooling1D()(a))


def slices(d: Drawer, x: Value) -> Value:
    """Parts, and what moves pixels."""
    a = d.conv(x, 8, name=d.pick("", "relu"))
    p, q = a[..., :4], a[..., 4:]
    kind = d.pick("concat", "crop", "pad", "space")
    if kind == "concat":
        a = d.layers.Concatenate()([q, d.layers.Conv2D(4, 1, activation="relu")(p)])
    elif kind == "crop":
        a = d.layers.Cropping2D(1)(a)
    elif kind == "pad":
        a = d.layers.Conv2D(6, 3, d.pick(1, 2))(d.layers.ZeroPadding2D(d.pick(1, ((0, 1), (0, 1))))(p))
    else:
        a = d.layers.Permute((2, 1, 3))(a)
    return d.head(d.conv(a, 6))


def dense_blocks(d: Drawer, x: Value) -> Value:
    """Each layer reads all before it."""
    a = d.layers.MaxPooling2D(3, 2)(d.layers.ZeroPadding2D(1)(d.conv(x, 6, stride=d.pick(1, 2), name="relu")))
    for _ in range(d.pick(2, 3)):
        b = d.layers.Activation("relu")(d.layers.BatchNormalization()(a))
        a = d.layers.Concatenate()([a, d.layers.Conv2D(4, 3, padding="same", use_bias=False)(b)])
    return d.head(d.layers.AveragePooling2D(2, padding=d.pick("same", "valid"))(d.conv(a, 6, 1)))


def shuffled(d: Drawer, x: Value) -> Value:
    """ShuffleNet's block: halves, and channels in another order."""
    a = d.conv(x, 8, stride=2)
    left, right = a[..., :4], a[..., 4:]
    right = d.conv(d.depthwise(d.conv(right, 4, 1)), 4, 1)
    if left.shape != right.shape:
        return d.head(right)
    y = d.layers.Concatenate()([left, right])
    height, width = y.shape[1:3]
    y = d.layers.Permute((1, 2, 4, 3))(d.layers.Reshape((height, width, 2, 4))(y))
    return d.head(d.conv(d.layers.Reshape((height, width, 8))(y), 6, name="relu"))


def normalized_inputs(d: Drawer, x: Value) -> Value:
    """What Keras puts in front of a network, and dense layers over pixels."""
    if d.rng.random() < 0.5:
        x = d.layers.Normalization(mean=d.rng.normal(size=3).tolist(), variance=d.rng.uniform(0.5, 3, 3).tolist())(x)
    else:
        x = d.layers.Rescaling(float(d.rng.uniform(0.3, 2)), float(d.rng.normal()))(x)
    a = d.layers.Dense(d.pick(4, 8), activation=d.pick("relu", "gelu", None))(d.conv(x, 6, stride=2))
    a = d.layers.Dense(6, activation=d.pick("tanh", "relu"))(a)
    return d.head(d.layers.Multiply()([a, d.layers.Dense(6, activation="sigmoid")(a)]))


def transformer(d: Drawer, x: Value) -> Value:
    """Patches, attention of several heads, a network for each row."""
    a = d.layers.Conv2D(8, 4, 4)(x)
    a = d.layers.Reshape((16, 8))(a)
    for _ in range(d.pick(1, 2)):
        b = d.layers.LayerNormalization()(a)
        a = d.layers.Add()([a, d.layers.MultiHeadAttention(2, 4)(b, b)])
        b = d.layers.Dense(12, activation=d.pick("gelu", "relu"))(d.layers.LayerNormalization()(a))
        a = d.layers.Add()([a, d.layers.Dense(8)(b)])
    a = d.layers.GlobalAveragePooling1D()(a) if d.rng.random() < 0.5 else d.layers.Flatten()(a)
    return d.layers.Dense(5, activation=d.pick("softmax", None))(a)


def dilated(d: Drawer, x: Value) -> Value:
    """Causal convolutions over time with growing steps, and sums around them."""
    a = d.layers.Reshape((x.shape[1] * x.shape[2], x.shape[3]))(x)
    a = d.layers.Conv1D(6, 3, padding="causal", activation="relu")(a)
    for step in (2, 4)[: d.pick(1, 2)]:
        b = d.layers.Conv1D(6, 3, padding=d.pick("causal", "same"), dilation_rate=step, activation="relu")(a)
        a = d.layers.Add()([a, d.layers.Conv1D(6, 1)(b)])
    a = d.pick(d.layers.GlobalMaxPooling1D, d.layers.GlobalAveragePooling1D, d.layers.Flatten)()(a)
    return d.layers.Dense(5)(a)


def weighted(d: Drawer, x: Value) -> Value:
    """Gates of channels and of pixels, differences and quotients of branches."""
    a = d.conv(x, 8, stride=2)
    gate = d.layers.Dense(4, activation="relu")(d.layers.GlobalAveragePooling2D()(a))
    gate = d.layers.Reshape((1, 1, 8))(d.layers.Dense(8, activation=d.pick("sigmoid", "hard_sigmoid"))(gate))
    a = d.layers.Multiply()([a, gate])
    pixels = d.layers.Conv2D(1, 7, padding="same", activation="sigmoid")(a)
    a = d.layers.Multiply()([a, pixels])
    b = d.conv(a, 8, 1, name=d.pick("", "tanh"))
    if b.shape == a.shape:
        a = d.pick(d.layers.Subtract, d.layers.Maximum, d.layers.Minimum, d.layers.Average)()([a, b])
    return d.head(d.layers.UpSampling2D(d.pick(2, 3), interpolation=d.pick("nearest", "bilinear"))(a))


FAMILIES: tuple[Callable[[Drawer, Value], Value], ...] = (
    residual, preactivated, inverted, inception, unet, elementwise,
    sequence, autoencoder, normalized, attention, slices,
    dense_blocks, shuffled, normalized_inputs, transformer, dilated, weighted,
)  # fmt: skip

ATTEMPTS = 10
"""Draws of a network before a campaign ends."""


def draw(rng: np.random.Generator, family: Callable[[Drawer, Value], Value]) -> Any:  # noqa: ANN401 - a Keras model
    """A Keras model with random weights and statistics."""
    x = keras().Input((16, 16, 3), batch_size=1)
    model = keras().Model(x, family(Drawer(rng), x))
    for layer in model.layers:
        for weight in layer.weights:
            shape = tuple(weight.shape)
            if "variance" in weight.path:
                value = rng.uniform(0.3, 2.0, shape)
            elif "gamma" in weight.path:
                value = rng.normal(1.0, 0.4, shape)
            elif len(shape) < 2 or "alpha" in weight.path:
                value = rng.normal(0.1, 0.3, shape)
            else:
                spread = np.exp(rng.normal(0, 0.5, shape[-1]))
                value = rng.standard_normal(shape) * spread * 1.4 / np.sqrt(np.prod(shape[:-1]))
            weight.assign(value.astype(np.float32))
    return model


def converted(model: Any, rng: np.random.Generator, is_quantized: bool) -> bytes:  # noqa: ANN401 - a Keras model
    """The .tflite file: float, or int8 with int8 inputs and outputs."""
    tf: Any = import_module("tensorflow")
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if is_quantized:
        samples = rng.standard_normal((16, 1, 16, 16, 3)).astype(np.float32)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([sample] for sample in samples)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    with redirect_stdout(StringIO()):
        content: bytes = converter.convert()
    return content


def random_networks(count: int, seed: int, folder: Path) -> Iterator[tuple[str, Path, None]]:
    """Name, file and no samples of each network; every third one is int8."""
    for index in range(count):
        family = FAMILIES[index % len(FAMILIES)]
        name = f"{family.__name__}_{seed}_{index}"
        path = folder / f"{name}.tflite"
        path.write_bytes(_drawn(family, [seed, index], index % 3 == 2))
        yield name, path, None


def _drawn(family: Callable[[Drawer, Value], Value], seed: list[int], is_quantized: bool) -> bytes:
    """A file of a family; the next draw's where TFLiteConverter refuses one (int8 MAXIMUM beside a sigmoid).

    Raises:
        RuntimeError: it refuses all of them.
    """
    for attempt in range(ATTEMPTS):
        rng = np.random.default_rng([*seed, attempt] if attempt else seed)
        keras().utils.clear_session()
        network = draw(rng, family)
        with suppress(RuntimeError):  # its own lines have said why
            return converted(network, rng, is_quantized)
    raise RuntimeError(f"TFLiteConverter refuses {ATTEMPTS} networks of family {family.__name__}, seed {seed}")
