"""What can go wrong in TFLite, told apart: it said no, it died, or it never answered."""

from __future__ import annotations

from tflq.errors import OracleError


class OracleRefused(OracleError):  # noqa: N818 - named by what happened
    """TFLite rejects the model or cannot run it; the message is its own, in one line."""


class OracleAborted(OracleError):  # noqa: N818 - named by what happened
    """The worker process died: a failed CHECK in TFLite (SIGABRT), a segmentation fault, or a signal from outside."""


class OracleTimeout(OracleError):  # noqa: N818 - named by what happened
    """The worker gave no sign of life for as long as the caller allows one sample to take."""
