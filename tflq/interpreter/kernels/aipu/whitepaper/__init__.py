"""Arithmetic `aipu_whitepaper`: the formulas of whitepaper ACN-AWP-1002A that differ from the Optimizer's.

docs/differences/aipu.md, lists them side by side. Other layers run in arithmetic `aipu`; `operators.covers` decides.
"""

from __future__ import annotations

NAME = "aipu_whitepaper"
