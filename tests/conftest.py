"""Fixtures for all tests."""

from tests.support.oracle import oracle

__all__ = ["oracle"]
