"""Files of a graph that is quantised for NNIE (docs/nnie.md, 6)."""
