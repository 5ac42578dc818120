"""LoRA adapters in place of whole weights, and weights kept in 4 or 8 bits under them."""
