"""What is true of every trace, whichever room made it."""

from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, is_cheap, programs

from partway import trace


@examples(200)
@given(programs().filter(is_cheap), st.data())
def test_the_trace_of_a_prefix_is_a_prefix_of_the_trace(text: str, data: st.DataObject) -> None:
    whole = trace(text)
    length = data.draw(st.integers(0, len(whole.solution)))
    prefix = trace(whole.solution.prefix(length))
    assert prefix.states == whole.states[:length]


@examples(200)
@given(programs().filter(is_cheap))
def test_renaming_and_reformatting_leave_the_states(text: str) -> None:
    renamed = text
    for old, new in [("n0", "apples"), ("t0", "total_0"), ("n1", "q")]:
        renamed = renamed.replace(old, new)
    spaced = renamed.replace(" = ", "   =  ").replace("\n", "  # a remark\n\n")
    assert trace(spaced).states == trace(text).states
