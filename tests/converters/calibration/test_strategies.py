"""Each strategy against a computation of its definition on all the data at once."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.refused import refuses
from tflq.converters.calibration.options import STRATEGIES, StatisticsOptions, parse_strategy
from tflq.converters.calibration.statistics import Statistics, best_window
from tflq.converters.calibration.strategies import GAUSS_ALPHA, LAPLACE_ALPHA, MSE_STEPS, bounds_of, squared_error
from tflq.errors import OptionError

BATCHES = [np.random.default_rng([11, i]).laplace(0.3, 1.0 + 0.2 * i, (8, 500)).astype(np.float32) for i in range(5)]
ALL = np.concatenate(BATCHES).astype(np.float64)


def bounds(strategy: str, **changes: object) -> tuple[float, float]:
    options = StatisticsOptions(strategy, **changes)  # type: ignore[arg-type]
    statistics = Statistics(options)
    for batch in BATCHES:
        statistics.update(batch)
    return bounds_of(statistics, options)


def moving(values: list[float]) -> float:
    """Average values by 0.9 and 0.1 in float64."""
    found = values[0]
    for value in values[1:]:
        found = 0.9 * found + 0.1 * value
    return found


def test_extrema() -> None:
    assert bounds("extrema") == (ALL.min(), ALL.max())


def test_moving_average() -> None:
    expected = [moving([float(b.min()) for b in BATCHES]), moving([float(b.max()) for b in BATCHES])]
    assert bounds("mean") == pytest.approx(expected, rel=1e-6)


def test_weighted_means() -> None:
    low, high = np.array([b.min() for b in BATCHES], np.float64), np.array([b.max() for b in BATCHES], np.float64)
    assert bounds("weighted-mean") == pytest.approx((low.mean(), high.mean()), rel=1e-12)
    weights = (0.5, 0.2, 0.1, 0.1, 0.1)
    assert bounds("weighted-mean", weights=weights) == pytest.approx((low @ weights, high @ weights), rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_standard_deviations(n: int) -> None:
    mean, std = moving([b.mean() for b in BATCHES]), moving([b.std(ddof=1) for b in BATCHES])
    assert bounds(f"{n}std") == pytest.approx((mean - n * std, mean + n * std), rel=1e-5)


def test_standard_deviations_stay_inside_the_extrema() -> None:
    assert bounds("100std") == bounds("mean")


@pytest.mark.parametrize("percent", [99.99, 99.9, 95, 50])
def test_percentile_is_numpys_within_a_bin(percent: float) -> None:
    low, high = bounds(f"{percent}percentile", include_zero=False)
    outside = (100 - percent) / 2
    width = 2 * np.abs(ALL).max() / 2048
    for found, percentile in ((low, outside), (high, 100 - outside)):
        around = [np.percentile(ALL, percentile + d, method=m) for d, m in ((-0.005, "lower"), (0.005, "higher"))]
        assert around[0] - width <= found <= around[1] + width


def test_percentile_of_compass_scales_the_extrema() -> None:
    assert bounds("0.9compass-percentile") == pytest.approx((0.9 * ALL.min(), 0.9 * ALL.max()), rel=1e-6)


@pytest.mark.parametrize(("strategy", "alpha"), [("aciq_laplace", LAPLACE_ALPHA), ("aciq_gauss", GAUSS_ALPHA)])
@pytest.mark.parametrize("bits", [4, 8])
def test_aciq(strategy: str, alpha: dict[int, float], bits: int) -> None:
    mean = moving([b.mean() for b in BATCHES])
    mad = moving([float(np.abs(b - b.mean()).mean()) for b in BATCHES])
    std = moving([b.std(ddof=1) for b in BATCHES])
    reach = alpha[bits] * (mad if "laplace" in strategy else std)
    assert bounds(strategy, bits=bits) == pytest.approx((-(mean + reach), mean + reach), rel=1e-5)
    low = max(moving([float(b.min()) for b in BATCHES]), mean - reach)
    found = bounds(f"0.5{strategy}", bits=bits, symmetric=False)
    assert found == pytest.approx((low, max(0, low + reach)), rel=1e-5)


@pytest.mark.parametrize("bits", range(2, 17))
def test_laplace_alpha_is_where_the_expected_error_is_least(bits: int) -> None:
    # To a unit of the second decimal (the paper cuts 9.896 to 9.89).
    # ACIQ: 2 b^2 exp(-a/b) + a^2 / (3 * 4^bits); its derivative is zero where a * exp(a) = 3 * 4^bits, for b = 1.
    alpha = LAPLACE_ALPHA[bits]
    assert (alpha - 0.0105) * np.exp(alpha - 0.0105) < 3 * 4**bits < (alpha + 0.0105) * np.exp(alpha + 0.0105)


def test_mse_is_the_best_of_its_ranges_on_the_full_data() -> None:
    for symmetric in (True, False):
        low, high = bounds("mse", symmetric=symmetric, bits=4)
        each = np.ones(ALL.size, np.int64)
        fractions = np.arange(1, MSE_STEPS + 1) / MSE_STEPS
        errors = [squared_error(ALL.reshape(-1), each, (f * ALL.min(), f * ALL.max()), 4, symmetric) for f in fractions]
        ours = squared_error(ALL.reshape(-1), each, (low, high), 4, symmetric)
        assert ours <= 1.001 * min(errors)
        assert high < ALL.max()


def kl(p: np.ndarray, q: np.ndarray) -> float:
    return sum(a * np.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def test_kld_is_the_smallest_divergence_of_one_sided_windows() -> None:
    histogram = np.round(1e5 * np.exp(-np.arange(96) / 6.0)) + 1
    found = []
    for length in range(16, 97):
        p = histogram[:length].copy()
        p[-1] += histogram[length:].sum()
        groups = [[k for k in range(length) if k * 16 // length == i] for i in range(16)]
        q = np.zeros(length)
        for group in groups:
            q[group] = histogram[group].sum() / len(group)
        found.append(kl(p / p.sum(), q / q.sum()))
    best = 16 + int(np.argmin(found))
    low, high = best_window(histogram, 0.0, 96.0, 16, 1, bare=True)
    assert (low, high) == (0.0, float(best))
    assert 16 < best < 96


def test_compass_has_no_divergence_in_the_narrowest_window() -> None:
    histogram = np.round(1e5 * np.exp(-np.arange(96) / 6.0)) + 1
    assert best_window(histogram, 0.0, 96.0, 16, 1, bare=False) == (0.0, 16.0)


def test_kld_clips_outliers() -> None:
    low, high = bounds("kld", bits=4)
    assert ALL.min() < low < -1
    assert 1 < high < ALL.max()


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_holds_zero(name: str) -> None:
    options = StatisticsOptions(name)
    statistics = Statistics(options)
    statistics.update(np.array([[2.0, 3.0, 7.5]], np.float32))
    low, high = bounds_of(statistics, options)
    assert low <= 0 <= high
    assert high <= 7.5 or name.startswith("aciq")


test_refused_names = refuses(
    parse_strategy,
    OptionError,
    {
        "median": "unknown calibration strategy 'median'",
        "3mean": "takes no number",
        "101percentile": "allowed is 0 to 100",
        "": "unknown calibration strategy",
    },
)


@pytest.mark.parametrize(
    "changes", [{"batch_size": 0}, {"momentum": 1.5}, {"bins": 1}, {"bits": 1}, {"weights": (0.5, 0.6)}]
)
def test_refused_options(changes: dict[str, object]) -> None:
    with pytest.raises(OptionError, match="calibration"):
        StatisticsOptions("mean", **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.1,) * 10])
def test_refused_weights(weights: tuple[float, ...]) -> None:
    with pytest.raises(OptionError, match="weights were given"):
        bounds("weighted-mean", weights=weights)
