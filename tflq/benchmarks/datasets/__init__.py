"""MLPerf Tiny's data sets: published files, and samples built from the original archives."""
