"""Fixtures and settings for all tests."""

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.support.oracle import optimized_oracle, oracle

__all__ = ["optimized_oracle", "oracle"]

# A busy machine is no failure, and every run draws the same examples.
settings.register_profile("tflq", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tflq")

# Hypothesis also draws constants of the modules that are loaded, which depend on the tests that ran before.
if hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = lambda: providers.Constants()
