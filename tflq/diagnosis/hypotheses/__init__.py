"""Causes of a wrong layer: each hypothesis predicts the dump (docs/guides/diagnosis.md)."""
