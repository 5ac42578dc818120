"""Scores solutions under P_theta, on a token tree where equal beginnings are computed once."""
