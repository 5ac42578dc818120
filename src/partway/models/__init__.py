"""P_theta: prompts, tokens, loading, the tiny model, and what an engine is; nothing is imported here."""
