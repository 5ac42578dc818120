"""Draws samples from inference servers, one or many, and gives them new weights."""
