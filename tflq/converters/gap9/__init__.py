"""GAP9: the NE16 accelerator and the cluster's SQ8 kernels (docs/gap9.md)."""

from __future__ import annotations

from tflq.converters.gap9.target import NE16, SQ8

__all__ = ["NE16", "SQ8"]
