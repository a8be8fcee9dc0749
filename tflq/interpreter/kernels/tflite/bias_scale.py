"""The scale of a bias where weights have one: TFLite compares it with the product of the scales it stands for."""

from __future__ import annotations

from tflq.errors import UnsupportedError
from tflq.graph import Affine, Tensor
from tflq.interpreter.operands.checks import per_tensor

TOLERANCE = 0.02


def require_bias_scale(x: Tensor, weights: Tensor, bias: Tensor, output: Tensor) -> None:
    """Check |si sw - scale of the bias| <= 0.02 so, in float64; a bias without scale counts as 0.

    Raises:
        UnsupportedError: it is farther off; TFLite refuses the model.

    Source: TFLite kernels/kernel_util.cc, GetQuantizedConvolutionMultipler.
    """
    stated = float(bias.quantisation.scale[0]) if isinstance(bias.quantisation, Affine) else 0.0
    product = float(per_tensor(x)[0]) * float(per_tensor(weights)[0])
    if abs(product - stated) / float(per_tensor(output)[0]) > TOLERANCE:
        raise UnsupportedError(
            f"the bias '{bias.name}' has scale {stated}, input and weights give {product}; TFLite allows a difference "
            f"of {TOLERANCE} of the output's scale"
        )
