"""Which precision each layer needs: sensitivity, and the cheapest setting that keeps an accuracy (docs/search.md)."""
