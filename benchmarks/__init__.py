"""Races against stated baselines: `python -m benchmarks trace`, with --json one object instead of a table."""
