"""Decides whether functions pass tests, in a process that the functions never see."""

from undertest.judging import Room, objection, passes

__all__ = ["Room", "objection", "passes"]
