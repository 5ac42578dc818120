"""Sampling from P_theta: guided sampling (Algorithm 2), on a tree that computes equal beginnings once."""
