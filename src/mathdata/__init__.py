"""Published data sets to problems: GSM8K and MathQA."""
