"""A page to look at the problems of a run, their solutions and states, and a server for it."""
