"""Python as people write it: functions that return, last lines that print, functions under test."""
