"""P_theta: prompts and tokens, the token tree, sampling on it, scoring on it, the built-in tiny model.

Everything here but `settings` and `engine` needs torch, so this package imports nothing by itself.
"""
