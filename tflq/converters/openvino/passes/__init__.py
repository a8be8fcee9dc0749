"""Passes from a float network with ranges to levels between linear operators."""
