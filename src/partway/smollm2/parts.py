"""What this folder adds to the method: a model by name."""

from partway.registry import Part, Parts

PARTS: Parts = {"models": {"smollm2": Part("partway.smollm2.unpacking:directory", "135 million parameters.")}}
