"""The oracle: TFLite itself, in a worker process, as the judge of every tensor.

`Oracle` runs a model in ai-edge-litert or tensorflow and returns each tensor; the process that may abort, hang or print
is never the caller's own. Nothing of TFLite is imported here.
"""

from __future__ import annotations

from tflq.oracle.oracle import Oracle
from tflq.oracle.results import (
    OracleAborted,
    OracleIdentity,
    OracleModel,
    OracleRefused,
    OracleRun,
    OracleTensor,
    OracleTimeout,
    OracleTiming,
)

__all__ = [
    "Oracle",
    "OracleAborted",
    "OracleIdentity",
    "OracleModel",
    "OracleRefused",
    "OracleRun",
    "OracleTensor",
    "OracleTimeout",
    "OracleTiming",
]
