"""Fixtures for all tests."""

from tests.support.oracle import optimised_oracle, oracle

__all__ = ["optimised_oracle", "oracle"]
