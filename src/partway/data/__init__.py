"""Files and tables to problems."""
