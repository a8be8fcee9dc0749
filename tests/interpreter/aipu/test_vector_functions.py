"""Functions of PyTorch's vectors: values that PyTorch 2.13 gives where the correctly rounded ones are others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from tflq.graph import Attributes, Node
from tflq.interpreter.kernels.aipu import vector_functions as vectors
from tflq.interpreter.kernels.aipu.curve import function_of
from tflq.interpreter.kernels.aipu.exponentials import exponential_of_library, gelu_of_vectors
from tflq.interpreter.kernels.aipu.float_sums import AMD

Single = NDArray[np.float32]


@pytest.mark.parametrize(
    ("function", "arguments", "wanted"),
    [
        (
            vectors.softplus,
            (2.5102444, -1.1990175, 0.81496334, -3.4105759, 25.0),
            (2.5883608, 0.26351, 1.1814488, 0.032488663, 25.0),
        ),
        (
            partial(vectors.elu, alpha=0.7),
            (-4.275815, -2.1549416, -2.2514248, -1.0326786, 1.25, -30.0),
            (-0.69026953, -0.618863, -0.62632555, -0.4507636, 1.25, -0.7),
        ),
        (
            vectors.mish,
            (-4.819149, -4.6866236, -3.4105759, -4.6988897, 200.0),
            (-0.038751088, -0.043001063, -0.11076608, -0.042590395, 200.0),
        ),
        (
            vectors.softsign,
            (-3.8091667, 0.49269408, -3.9684756, 1.1183807),
            (-0.7920637, 0.33007035, -0.7987311, 0.52794135),
        ),
        (
            partial(vectors.swish, alpha=1.3),
            (0.55876064, -4.819149, -4.275815, -1.1990175),
            (0.3766116, -0.009148218, -0.016417103, -0.20842524),
        ),
        (vectors.silu, (2.5473871, -4.6866236, 2.0757818, 5.6202936), (2.3624413, -0.042805582, 1.8443881, 5.6000013)),
        (vectors.sigmoid, (2.5102444, -1.1990175, -4.6866236, 200.0), (0.92485684, 0.23165005, 0.009133565, 1.0)),
        (vectors.sigmoid, (-1.1071434, 0.55184746), (0.24840382, 0.6345641)),
        (vectors.expm1, (5.6950865, 0.40552807, 5.0584335, 0.43539238), (296.4025, 0.5000944, 156.34384, 0.54556936)),
        (
            vectors.log1p,
            (4.424777, 4.530986, 0.21471214, 0.3884697),
            (1.6909769, 1.7103661, 0.19450714, 0.32820222),
        ),
        (
            partial(vectors.power, exponent=1.7),
            (3.5260868, 7.5469627, 2.6969194, 3.267826, 0.0, 1.0),
            (8.519186, 31.06081, 5.4010177, 7.485834, 0.0, 1.0),
        ),
        (
            partial(vectors.power, exponent=-1.3),
            (6.9026203, 0.47539997, 3.9157104, 3.6145306, 0.0),
            (0.08114876, 2.629197, 0.16956894, 0.18816227, np.inf),
        ),
        (vectors.softplus, (-3.122932, -1.4445624), (0.043086205, 0.21175839)),
        (vectors.mish, (-5.12198, 2.252011, 8.67), (-0.03045742, 2.2115777, 8.67)),
        (vectors.silu, (5.1669273,), (5.1376324,)),
        (vectors.sigmoid, (-3.3484507,), (0.033945937,)),
        (vectors.softsign, (2.910055,), (0.7442491,)),
        (vectors.expm1, (0.37125015, -0.10614403, -16.7), (0.44954562, -0.10070489, -1.0)),
        (vectors.log1p, (4.889035,), (1.7730922,)),
        (partial(vectors.swish, alpha=1.3), (108.36009,), (108.36009,)),
        (
            partial(vectors.elu, alpha=0.7),
            (-0.6953331, 2.910055, 0.081244946, -0.0),
            (-0.35076424, 2.910055, 0.081244946, -0.0),
        ),
        (partial(vectors.power, exponent=1.7), (5.5697484, 2.0, 0.0), (18.531923, 3.2490096, 0.0)),
        (partial(vectors.power, exponent=5.0), (39.0, 2.5459447e-14, -4.8258214), (9.02242e07, 0.0, -2617.3164)),
        (partial(vectors.power, exponent=4.0), (-4.8258214,), (542.3567,)),
        (partial(vectors.power, exponent=-3.0), (5.172668,), (0.0072253053,)),
        (partial(vectors.power, exponent=0.3), (0.0,), (0.0,)),
        (partial(vectors.power, exponent=2.0), (7.0,), (49.0,)),
        (partial(vectors.power, exponent=3.0), (5.7692,), (192.02014,)),
        (partial(vectors.power, exponent=-2.0), (5.1168523,), (0.038193922,)),
        (partial(vectors.power, exponent=-0.5), (7.2152143,), (0.3722849,)),
        (partial(vectors.power, exponent=-1.0), (7.077055,), (0.14130172,)),
        (
            gelu_of_vectors,
            (
                -5.8723073,
                0.6772134,
                -3.7981987,
                -5.17292,
                -0.8410764,
                -3.4172297,
                1.9934217,
                4.3415895,
                -1.196596,
                1.5699686,
                2.998491,
                2.4068587,
                1.3639448,
                0.8930324,
                -0.5740255,
                0.38614145,
                0.45495087,
                0.3300251,
                0.24983914,
                -0.2669599,
                -5.7710958,
                -0.21066992,
                -0.18376455,
                0.12869316,
                0.02366037,
            ),
            (
                -0.0,
                0.5084956,
                -0.00027676212,
                -6.1666015e-07,
                -0.1683436,
                -0.0010800278,
                1.9473584,
                4.341559,
                -0.13848451,
                1.4785788,
                2.9944234,
                2.3874948,
                1.2462466,
                0.7269999,
                -0.16243501,
                0.25110936,
                0.3072864,
                0.20768794,
                0.14956474,
                -0.10538242,
                -0.0,
                -0.08775928,
                -0.07848567,
                0.070935644,
                0.012053496,
            ),
        ),
        (partial(exponential_of_library, library=AMD), (-1.7469463, -4.4364533), (0.1743054, 0.011837849)),
    ],
)
def test_values_of_the_tool(
    function: Callable[[Single], Single], arguments: tuple[float, ...], wanted: tuple[float, ...]
) -> None:
    with np.errstate(all="ignore"):
        found = function(np.array(arguments, np.float32))
    assert found.dtype == np.float32
    assert found.tolist() == np.array(wanted, np.float32).tolist()


@pytest.mark.parametrize(
    ("alpha", "arguments", "wanted"),
    [
        (0.2, (2.383283, -1.1818055, -1.3294463, -1.4707825), (0.97665656, 0.2636389, 0.23411074, 0.20584348)),
        (0.166667, (2.619859, 1.8107798, 2.0103319, -0.98954386), (0.9366441, 0.8017973, 0.83505595, 0.33507568)),
    ],
)
def test_hardsigmoid_rounds_product_and_sum(
    alpha: float, arguments: tuple[float, ...], wanted: tuple[float, ...]
) -> None:
    keys = {"method": "HARDSIGMOID", "alpha": alpha, "beta": 0.5, "clip_min": 0.0, "clip_max": 1.0}
    x = np.array(arguments, np.float32).astype(np.float64)
    found = function_of(Node("activation", (0,), (1,), Attributes(keys), "y"))(x)
    assert found.tolist() == np.array(wanted, np.float32).astype(np.float64).tolist()
    once = (np.float64(np.float32(alpha)) * x + 0.5).astype(np.float32)
    assert np.all(once != found)


def test_powers_below_zero() -> None:
    x = np.array([-2.0, -0.5], np.float32)
    with np.errstate(all="ignore"):
        assert vectors.power(x, 5.0).tolist() == [-32.0, -0.03125]
        assert vectors.power(x, 4.0).tolist() == [16.0, 0.0625]
        assert np.isnan(vectors.power(x, 1.5)).all()
