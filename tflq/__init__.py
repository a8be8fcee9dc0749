"""tflq: reads .tflite files, requantises them for NPUs, and runs TFLite's integers bit for bit in numpy."""

from __future__ import annotations

__version__ = "0.1.0"
