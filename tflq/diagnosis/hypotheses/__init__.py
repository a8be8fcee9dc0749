"""Tells why a layer of a dump is wrong: hypotheses that are computed and held against it (docs/guides/diagnosis.md)."""
