"""Compares ways of learning (arms) that share weights, problems, budget and selection rules."""
