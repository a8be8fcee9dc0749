"""`python -m tflq`: the command `tflq` without its script."""

from __future__ import annotations

import sys

from tflq.cli import main

if __name__ == "__main__":
    sys.exit(main())
