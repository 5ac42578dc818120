"""What this folder adds to the method: two languages."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "languages": {
        "python-written": Part(
            "partway.written.forms:WrittenLanguage",
            "Python as people write it: a function that returns, a last line that prints, a main guard.",
        ),
        "python-tests": Part(
            "partway.written.tested:TestedLanguage",
            "Functions under test (MBPP, HumanEval): the answer is a list of assertions.",
        ),
    }
}
