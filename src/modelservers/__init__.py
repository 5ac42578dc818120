"""Inference servers: asked for completions, told of new weights, any number of them."""
