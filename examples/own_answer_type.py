"""Answers need not be numbers: lists, strings, sets and dictionaries are compared by content.

python examples/own_answer_type.py
"""

from partway import Problem, SolutionBuffer, is_correct, trace

PROBLEM = Problem(
    id="sort",
    question="Which of the lengths 4, 9 and 7 are odd, smallest first?",
    answer=[7, 9],
    reference="lengths = [4, 9, 7]\nodd = [x for x in lengths if x % 2]\nanswer = sorted(odd)",
)

SAMPLES = {
    "another way": "lengths = [4, 9, 7]\nlengths.sort()\nanswer = [x for x in lengths if x % 2 == 1]",
    "a tuple": "lengths = (4, 9, 7)\nanswer = tuple(sorted(x for x in lengths if x % 2))",
    "right partway": "data = [4, 9, 7]\nanswer = max(data)",
    "wrong": "answer = [4]",
}


def main() -> None:
    buffer = SolutionBuffer.seeded(PROBLEM)
    for name, text in SAMPLES.items():
        print(f"{name:>14}: {buffer.consider(trace(text))}")

    # Want another notion of a right answer? Reduce both sides to a plain value in the last step:
    # a program that answers `sorted(result)` or `round(result, 2)` says what counts as equal.
    assert is_correct({"b": 2, "a": 1.0}, {"a": 1, "b": 2})
    assert not is_correct("7", 7)


if __name__ == "__main__":
    main()
