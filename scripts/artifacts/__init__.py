"""Compares the artifacts that two checkouts emit: `conversions.py` lists the conversions, `worker.py` runs them."""
