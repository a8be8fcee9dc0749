"""Comparison of two runs, the oracle, and the explanation of single numbers."""
