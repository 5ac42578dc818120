"""One module per benchmark; each prints a table or, with --json, one object."""
