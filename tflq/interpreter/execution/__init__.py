"""Execution: lowering a graph, and running it over samples, chunks, threads, subgraphs and invocations."""
