"""`python -m tflq`: the command `tflq` where its script is not installed."""

from __future__ import annotations

import sys

from tflq.cli import main

if __name__ == "__main__":
    sys.exit(main())
