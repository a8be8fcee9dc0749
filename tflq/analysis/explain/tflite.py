"""What is explained in TFLite's integers (docs/tflite.md)."""

from __future__ import annotations

from tflq.analysis.explain import tflite_elementwise, tflite_filters, tflite_rows
from tflq.analysis.explain.family import Families, Family
from tflq.analysis.explain.steps import Explain
from tflq.interpreter.kernels.tflite.average_pool_2d import AveragePool
from tflq.interpreter.kernels.tflite.clamped import Clamped
from tflq.interpreter.kernels.tflite.dequantize import Dequantize
from tflq.interpreter.kernels.tflite.fully_connected import FullyConnected
from tflq.interpreter.kernels.tflite.max_pool_2d import MaxPool
from tflq.interpreter.kernels.tflite.mean import Mean
from tflq.interpreter.kernels.tflite.mul import QuantisedProduct
from tflq.interpreter.kernels.tflite.quantised_convolution import QuantisedConvolution
from tflq.interpreter.kernels.tflite.quantize import FromFloat, Requantise
from tflq.interpreter.kernels.tflite.rescaled_sum import RescaledSum
from tflq.interpreter.kernels.tflite.softmax import Softmax


def _family(operators: str, explain: Explain, source: str) -> Family:
    return Family(operators, "tflite", explain, f"TFLite {source}; docs/tflite.md")


FAMILIES: Families = {
    QuantisedConvolution: _family(
        "conv_2d, depthwise_conv_2d", tflite_filters.explain_convolution, "reference/integer_ops/conv.h"
    ),
    FullyConnected: _family(
        "fully_connected", tflite_filters.explain_fully_connected, "reference/integer_ops/fully_connected.h"
    ),
    RescaledSum: _family("add, sub", tflite_elementwise.explain_sum, "reference/add.h"),
    QuantisedProduct: _family("mul", tflite_elementwise.explain_product, "reference/integer_ops/mul.h"),
    Mean: _family("mean", tflite_rows.explain_mean, "reference/reduce.h"),
    Clamped: _family(
        "relu, relu6, relu_n1_to_1, relu_0_to_1", tflite_elementwise.explain_clamped, "reference/reference_ops.h"
    ),
    Requantise: _family("quantize", tflite_elementwise.explain_requantise, "reference/requantize.h"),
    FromFloat: _family("quantize of float32", tflite_elementwise.explain_from_float, "reference/quantize.h"),
    Dequantize: _family("dequantize", tflite_elementwise.explain_dequantize, "reference/dequantize.h"),
    AveragePool: _family("average_pool_2d", tflite_rows.explain_average_pool, "reference/integer_ops/pooling.h"),
    MaxPool: _family("max_pool_2d", tflite_rows.explain_max_pool, "reference/integer_ops/pooling.h"),
    Softmax: _family("softmax of 8 bits", tflite_rows.explain_softmax, "reference/softmax.h"),
}
