"""Faults as boards have them, planted in networks of every target, and whether `compare` names their cause."""
