"""Reads problems from files and tables."""
