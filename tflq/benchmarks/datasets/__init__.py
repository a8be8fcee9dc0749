"""MLPerf Tiny's data sets: what mlcommons publishes of them, and the rest made of the original archives."""
