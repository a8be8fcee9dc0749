"""Traits: the properties by which code outside the kernels groups operators."""

from __future__ import annotations

from enum import Flag, auto


class Trait(Flag):
    """A property that operators share.

    Attributes:
        UNARY: A function of each element of one operand: y[i] = f(x[i]).
        PAIR: A function of the elements of two operands that broadcast: y[i] = f(a[i], b[i]).
        ARITHMETIC: ADD, SUB, MUL, DIV.
        AFFINE: ADD, SUB, MUL: an affine function of one operand if the other operand is constant.
        EXTREME: MAXIMUM, MINIMUM.
        SCALED: A pair with a kernel for quantized operands of different scales.
        COMMUTATIVE: The order of the operands does not change the result.
        COMPARISON: A pair with a bool result.
        LOGICAL: bool operands and a bool result.
        BITWISE: Integer operands that are taken bit by bit.
        RECTIFIER: A clamp with fixed bounds, such as RELU6.
        ACTIVATION: A function that networks use as an activation; includes RECTIFIER.
        TWO_SIDED: An activation with bounded results on both sides, such as TANH.
        REDUCTION: A reduction over axes that operand 1 states.
        ARG: An index of an extreme element along an axis.
        MOVEMENT: The result contains elements of the data operands, unchanged, and possibly constants.
        RESHAPE: A movement that keeps the order of the elements in memory.
        JOIN: A movement of several operands into one result.
        SPLIT: A movement of one operand into several results.
        CROP: A movement that selects a rectangular part: SLICE, STRIDED_SLICE.
        PAD: A movement that surrounds the data with constants.
        LOOKUP: A movement by indices that are data: GATHER, GATHER_ND, EMBEDDING_LOOKUP.
        CONSTANT_PAD: PAD and PADV2.
        BLOCKS: A movement between pixels and channels or batches.
        REPEAT: A movement that repeats the data: TILE, BROADCAST_TO.
        WINDOW: The result depends on a window of each position: convolutions and pools.
        POOL: A window without weights.
        WEIGHTS: The operator has a weights operand (`weights`) with output channels (`channel_axis`).
        CONVOLUTION: CONV_2D and DEPTHWISE_CONV_2D.
        LINEAR: CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED: weights, bias and data in the usual order.
        TRANSPOSED: A convolution with the roles of input and output exchanged.
        VOLUME: A convolution along three axes.
        RECURRENT: A layer with state along a sequence.
        RESIZE: An interpolation of images.
        CONVERSION: A change of type of the same numbers: QUANTIZE, DEQUANTIZE, FAKE_QUANT.
        KEEPS_SCALE: TFLite requires or a converter writes the same quantization for data and result.
        FIXED_SCALE: A constant scale of the quantized result is part of the operator.
        FUSES: The options have a field `fused_activation_function`.
        CHOICE: Elements of several operands chosen by a condition: SELECT, WHERE's relatives.
        SOFTMAX: SOFTMAX and LOG_SOFTMAX.
        RANDOM: Each run draws new values.
        STATEFUL: The operator reads or writes state that outlives a run.
        CONTROL: The operator runs other graphs.
        SHAPE_ONLY: The result depends on shapes, not on values.
        SAME_SHAPE: The only result has the shape of operand 0.
    """

    UNARY = auto()
    PAIR = auto()
    ARITHMETIC = auto()
    SCALED = auto()
    AFFINE = auto()
    EXTREME = auto()
    COMMUTATIVE = auto()
    COMPARISON = auto()
    LOGICAL = auto()
    BITWISE = auto()
    RECTIFIER = auto()
    ACTIVATION = auto()
    TWO_SIDED = auto()
    REDUCTION = auto()
    ARG = auto()
    MOVEMENT = auto()
    RESHAPE = auto()
    JOIN = auto()
    SPLIT = auto()
    CROP = auto()
    PAD = auto()
    LOOKUP = auto()
    CONSTANT_PAD = auto()
    BLOCKS = auto()
    REPEAT = auto()
    WINDOW = auto()
    POOL = auto()
    WEIGHTS = auto()
    CONVOLUTION = auto()
    LINEAR = auto()
    TRANSPOSED = auto()
    VOLUME = auto()
    RECURRENT = auto()
    RESIZE = auto()
    CONVERSION = auto()
    KEEPS_SCALE = auto()
    FIXED_SCALE = auto()
    FUSES = auto()
    CHOICE = auto()
    SOFTMAX = auto()
    RANDOM = auto()
    STATEFUL = auto()
    CONTROL = auto()
    SHAPE_ONLY = auto()
    SAME_SHAPE = auto()
