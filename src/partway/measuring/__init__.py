"""`partway evaluate`: evaluations that can be stopped, their results in files, two compared, and chance."""
