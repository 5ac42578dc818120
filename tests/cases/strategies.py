"""Random solutions: straight-line arithmetic of the interpreter's subset, and small general programs."""

from hypothesis import settings
from hypothesis import strategies as st

NAMES = ["n0", "n1", "n2", "t0", "t1", "x", "answer"]

integers = st.one_of(
    st.integers(0, 12), st.integers(0, 10**6), st.sampled_from([0, 1, 2**31, 2**53 + 1, 10**30])
)
floats = st.one_of(
    st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.5, 1e-9, 1e16, 1e300, 123456789012.0]),
    st.floats(0, 1e6, allow_nan=False),
)
numbers = st.one_of(integers.map(str), floats.map(repr), st.sampled_from(["True", "False"]))
names = st.sampled_from(NAMES[:-1])
atoms = st.one_of(names, names, numbers)

OPERATORS = ["+", "-", "*", "/", "//", "%", "**"]
COMPARISONS = ["<", "<=", ">", ">=", "==", "!="]
UNARY_CALLS = [
    "abs",
    "int",
    "float",
    "round",
    "math.sqrt",
    "math.floor",
    "math.ceil",
    "math.log",
    "math.isqrt",
]
BINARY_CALLS = ["min", "max", "math.gcd", "math.lcm", "math.comb", "math.perm", "math.pow", "round"]


REFERENCES = [
    "v0 = 1\nv1 = 2\nv2 = v0 + v1\nanswer = v2 + 1",
    "v0 = 3\nanswer = v0 + 1",
    "import math\nv0 = 2\nanswer = v0 * 2",
    None,
]


def examples(count: int) -> settings:
    """So many examples of a property; the profile `quick` takes a fifth."""
    assert settings.default is not None, "a profile is loaded in tests/conftest.py"
    return settings(max_examples=max(1, count * settings.default.max_examples // 100))


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(" ".join),
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(lambda p: f"({' '.join(p)})"),
        st.tuples(inner, st.sampled_from(OPERATORS[:4]), inner).map("".join),
        inner.map(lambda e: f"-{e}"),
        inner.map(lambda e: f"(not {e})"),
        st.tuples(inner, st.sampled_from(COMPARISONS), inner).map(lambda p: f"({' '.join(p)})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda p: f"({' '.join(p)})"),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
        st.tuples(st.sampled_from(UNARY_CALLS), inner).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(st.sampled_from(BINARY_CALLS), inner, inner).map(lambda p: f"{p[0]}({p[1]}, {p[2]})"),
        inner.map(lambda e: f"sum([{e}, 1])"),
    )


expressions = st.recursive(atoms, _combined, max_leaves=5)

statements = st.one_of(
    st.tuples(names, expressions).map(" = ".join),
    st.tuples(names, expressions).map(" = ".join),
    st.tuples(names, st.sampled_from(["+=", "-=", "*=", "/="]), expressions).map(" ".join),
    st.tuples(names, names, expressions, expressions).map(lambda p: f"{p[0]}, {p[1]} = {p[2]}, {p[3]}"),
    st.tuples(names, names, expressions).map(lambda p: f"{p[0]} = {p[1]} = {p[2]}"),
    expressions.map(lambda e: f"print({e})"),
    st.just("pass"),
)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A straight-line program: constants first, as the paper's are, so that most of its names are bound."""
    constants = [f"{name} = {draw(numbers)}" for name in NAMES[: draw(st.integers(0, 4))]]
    body = draw(st.lists(statements, max_size=5))
    ending = draw(st.one_of(st.just([]), expressions.map(lambda e: [f"answer = {e}"])))
    return "\n".join(["import math", *constants, *body, *ending])


def is_cheap(text: str) -> bool:
    """Whether CPython itself would finish: no towers of powers or large factorial-like calls."""
    return text.count("**") <= 1 and "math.comb" not in text and "math.perm" not in text


small = st.sampled_from(["1", "2", "3"])


@st.composite
def small_programs(draw: st.DrawFn) -> str:
    """Programs over so few numbers and names that states meet often, which buffers care about."""
    lines = []
    for index in range(draw(st.integers(1, 4))):
        known = [f"v{i}" for i in range(index)]
        operand = st.sampled_from([*known, "1", "2"])
        shape = draw(
            st.sampled_from(["constant", "sum", "product", "quotient", "failing"] if index else ["constant"])
        )
        right = {
            "constant": draw(small),
            "sum": f"{draw(operand)} + {draw(operand)}",
            "product": f"{draw(operand)} * {draw(operand)}",
            "quotient": f"{draw(operand)} / 1",  # 2.0 is the same value as 2, but not for every operation
            "failing": "1 / 0" if draw(st.integers(0, 5)) == 0 else draw(operand),
        }[shape]
        lines.append(f"v{index} = {right}")
    names = [f"v{index}" for index in range(len(lines))]
    if draw(st.integers(0, 2)) == 0:
        lines.insert(draw(st.integers(0, 1)), "import math")  # a step that leaves the state as it was
    if draw(st.booleans()):
        lines.append(f"answer = {draw(st.sampled_from(names))} + {draw(small)}")
    return "\n".join(lines)
