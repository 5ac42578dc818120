"""Scoring solutions under P_theta: the token tree on which equal beginnings are scored once."""
