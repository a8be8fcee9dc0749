"""How a kernel ran on one sample: its own code, recorded operation by operation (docs/rules/fixed_point.md)."""
