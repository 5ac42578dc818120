"""Losses that keep a model from growing too sure of the few solutions it was shown."""
