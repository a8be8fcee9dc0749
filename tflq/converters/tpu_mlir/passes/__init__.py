"""Passes from the float graph to BM1684X's."""
