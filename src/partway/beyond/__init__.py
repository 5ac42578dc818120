"""A rule that the paper lacks: which solutions are right by luck."""
