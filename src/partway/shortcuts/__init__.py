"""Ways of sampling beside the plain tree: faster for large models, and for models with a running state."""
