"""Executions of a model over samples, in this process, in several, and on several machines."""
