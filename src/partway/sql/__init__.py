"""SQL as a language of the method: a step is a common table expression, its state the rows it yields."""
