"""Rewrites of the Compass Parser over layers; `front_end.py` lists them in the Parser's order."""
