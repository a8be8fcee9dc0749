"""Writes a network as IR and lists its levels."""
