"""Random networks of 8-bit integers: convolutions of all kinds, pools, sums, functions, moves, in random order."""

from __future__ import annotations

import numpy as np

from tflq.graph import Affine, DType, Graph, GraphBuilder

Shape = tuple[int, int, int]
Pair = tuple[int, int]


class IntegerNetwork:
    """Grows a graph layer by layer; tensors of one network share a type. Shape and strides are drawn unless given."""

    def __init__(self, seed: int, shape: Shape | None = None, strides: Pair | None = None) -> None:
        self.strides = strides
        self.rng = np.random.default_rng(seed)
        self.builder = GraphBuilder(f"integers_{seed}")
        self.dtype = (DType.INT8, DType.UINT8)[int(self.rng.integers(4) == 0)]
        self.shape: Shape = shape or tuple(self.rng.integers((1, 1, 1), (15, 15, 20)).tolist())
        self.affine = self.quantization()
        self.x = self.builder.input("x", (1, *self.shape), self.dtype, self.affine)

    def quantization(self) -> Affine:
        zero = int(self.rng.integers(self.dtype.minimum, self.dtype.maximum + 1))
        zero = self.dtype.minimum if self.rng.random() < 0.3 else zero
        scale = np.float32(2.0 ** self.rng.uniform(-7, -3))
        return Affine.per_tensor(scale, zero, 8, self.dtype.is_signed)

    def activation(self) -> str:
        return str(self.rng.choice(["none", "relu", "relu6", "relu_n1_to_1"]))

    def grow(self, layers: int) -> Graph:
        actions = (self.convolution, self.depthwise, self.pool, self.pair, self.function, self.pointwise, self.branch)
        for _ in range(layers):
            actions[int(self.rng.integers(len(actions)))]()
        self.end()
        return self.builder.build([self.x])

    def windowed(self, operator: str, outputs: int, inputs: list[int], kernel: Pair, **more: object) -> None:
        """Add a layer with a window: output sizes as TFLite has them."""
        strides = self.rng.integers(1, 3, 2) if self.strides is None else np.array(self.strides)
        dilations = self.rng.integers(1, 3, 2) if "pool" not in operator and max(strides) == 1 else np.ones(2, int)
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        fits = all(size >= extent for size, extent in zip(self.shape[:2], extents, strict=True))
        padding = "valid" if fits and self.rng.random() < 0.4 else "same"
        sizes = [
            -(-size // s) if padding == "same" else (size - extent) // s + 1
            for size, s, extent in zip(self.shape[:2], strides.tolist(), extents, strict=True)
        ]
        attributes = {"stride_h": int(strides[0]), "stride_w": int(strides[1]), "padding": padding, **more}
        if "pool" not in operator:
            attributes |= {"dilation_h_factor": int(dilations[0]), "dilation_w_factor": int(dilations[1])}
            self.affine = self.quantization()
        self.shape = (sizes[0], sizes[1], outputs)
        attributes["fused_activation_function"] = self.activation()
        self.x = self.builder.add(operator, inputs, (1, *self.shape), self.dtype, self.affine, **attributes)

    def weights(self, shape: tuple[int, ...], axis: int) -> tuple[int, int]:
        """Return weights and bias: per channel and symmetric for int8, per tensor for uint8."""
        outputs, source = shape[axis], self.affine
        if self.dtype is DType.INT8:
            values = self.rng.integers(-127, 128, shape).astype(np.int8)
            scale = (2.0 ** self.rng.uniform(-9, -5, outputs)).astype(np.float32)
            affine = Affine(scale, np.zeros(outputs, np.int64), axis, 8, True)
        else:
            zero = int(self.rng.integers(100, 156))
            values = self.rng.integers(max(zero - 127, 0), min(zero + 127, 255) + 1, shape).astype(np.uint8)
            affine = Affine.per_tensor(np.float32(2.0 ** self.rng.uniform(-9, -5)), zero, 8, False)
        weights = self.builder.constant("w", values, affine)
        size = (source.scale * affine.scale).astype(np.float32)
        channel = 0 if size.size > 1 else None
        bias = Affine(size, np.zeros(size.size, np.int64), channel, 32, True)
        return weights, self.builder.constant("b", self.rng.integers(-2000, 2000, outputs).astype(np.int32), bias)

    def kernel(self) -> Pair:
        return int(self.rng.integers(1, 5)), int(self.rng.integers(1, 5))

    def convolution(self) -> None:
        outputs, kernel = int(self.rng.integers(1, 70)), self.kernel()
        self.windowed("conv_2d", outputs, [self.x, *self.weights((outputs, *kernel, self.shape[2]), 0)], kernel)

    def pointwise(self) -> None:
        outputs = int(self.rng.choice([8, 16, 24, 40, 64]))
        self.windowed("conv_2d", outputs, [self.x, *self.weights((outputs, 1, 1, self.shape[2]), 0)], (1, 1))

    def depthwise(self) -> None:
        kernel = (3, 3) if self.rng.random() < 0.5 else self.kernel()
        multiplier = 2 if self.rng.random() < 0.1 else 1
        outputs = self.shape[2] * multiplier
        operands = [self.x, *self.weights((1, *kernel, outputs), 3)]
        self.windowed("depthwise_conv_2d", outputs, operands, kernel, depth_multiplier=multiplier)

    def pool(self) -> None:
        kernel = self.kernel()
        name = str(self.rng.choice(["average_pool_2d", "max_pool_2d"]))
        self.windowed(name, self.shape[2], [self.x], kernel, filter_height=kernel[0], filter_width=kernel[1])

    def pair(self) -> None:
        """Two functions of one tensor, or a tensor and a layer above it, added or multiplied."""
        first, source = self.x, self.affine
        self.function()
        second, self.affine = self.x, self.quantization()
        wide = float(np.maximum(source.scale[0], self.affine.scale[0]))  # TFLite takes no sum finer than its terms
        self.affine = Affine.per_tensor(np.float32(2 * wide), int(self.affine.zero_point[0]), 8, self.dtype.is_signed)
        name = str(self.rng.choice(["add", "mul", "sub"]))
        shape = (1, *self.shape)
        attributes = {"fused_activation_function": self.activation()}
        self.x = self.builder.add(name, [first, second], shape, self.dtype, self.affine, **attributes)

    def function(self) -> None:
        name = str(self.rng.choice(["relu", "leaky_relu", "logistic", "hard_swish"]))
        self.affine = self.quantization()
        if name == "logistic":
            self.affine = Affine.per_tensor(np.float32(1 / 256), self.dtype.minimum, 8, self.dtype.is_signed)
        attributes = {"alpha": 0.25} if name == "leaky_relu" else {}
        self.x = self.builder.add(name, [self.x], (1, *self.shape), self.dtype, self.affine, **attributes)

    def branch(self) -> None:
        """Two convolutions with other borders read one tensor; a layer that numpy runs joins them."""
        source, shape, affine = self.x, self.shape, self.affine
        parts, ends = [], []
        for kernel in ((1, 1), (3, 3)):
            self.x, self.shape, self.affine = source, shape, affine
            constants = self.weights((8, *kernel, shape[2]), 0)
            self.affine = ends[0] if ends else self.quantization()
            ends.append(self.affine)
            attributes = {"stride_h": 1, "stride_w": 1, "padding": "same", "dilation_h_factor": 1}
            attributes |= {"dilation_w_factor": 1, "fused_activation_function": "none"}
            made = self.builder.add(
                "conv_2d", [source, *constants], (1, *shape[:2], 8), self.dtype, self.affine, **attributes
            )
            parts.append(made)
        self.shape = (*shape[:2], 16)
        options = {"axis": 3, "fused_activation_function": "none"}
        self.x = self.builder.add("concatenation", parts, (1, *self.shape), self.dtype, self.affine, **options)

    def end(self) -> None:
        """Flatten, a fully connected layer."""
        size, outputs = int(np.prod(self.shape)), int(self.rng.integers(1, 40))
        shape = self.builder.constant("shape", np.array([1, size], np.int32))
        flat = self.builder.add("reshape", [self.x, shape], (1, size), self.dtype, self.affine)
        constants = self.weights((outputs, size), 0)
        self.affine = self.quantization()
        attributes = {"fused_activation_function": self.activation(), "keep_num_dims": False}
        attributes |= {"weights_format": "default"}
        self.x = self.builder.add(
            "fully_connected", [flat, *constants], (1, outputs), self.dtype, self.affine, **attributes
        )


def integer_network(seed: int, layers: int | None = None) -> Graph:
    """Return a random network: the same for the same seed."""
    network = IntegerNetwork(seed)
    return network.grow(int(network.rng.integers(1, 7)) if layers is None else layers)


def depthwise_network(seed: int, shape: Shape | None = None, strides: Pair | None = None) -> Graph:
    """Return a depthwise layer, of as many channels as fill vectors, alone or with its neighbors, or do not."""
    rng = np.random.default_rng(seed)
    channels = int(rng.choice([1, 2, 3, 4, 8, 12, 16, 24, 32, 40, 64, 72, 128]))
    drawn = int(rng.integers(1, 12)), int(rng.integers(1, 18)), channels
    network = IntegerNetwork(seed, shape or drawn, strides)
    network.depthwise()
    return network.builder.build([network.x])
