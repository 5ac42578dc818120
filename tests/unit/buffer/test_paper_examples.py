"""The worked examples of the paper's qualitative appendix get the verdicts the paper gives them."""

import pytest

from partway import Problem, Solution, SolutionBuffer, Verdict, trace

MATHQA_1 = """n0=70.0
n1=10.0
t0=100.0-n0
t1=100.0-n1
t2=t0/t1
t3=t2*100.0
t4=100.0-t3
t5=t4/t3
answer=t5*100.0"""

MATHQA_1_FCS = """n0=70.0
n1=10.0
t0=100.0-n1
t1=100.0-n0
t2=t0/t1
t3=t2*100.0
answer=t3-100.0"""

MATHQA_3 = """n0=15.0
n1=10.0
t0=n0+n1
t1=n0/t0
t2=n1/t0
t3=t0-1.0
t4=n1/t3
t5=n0/t3
t6=t1*t4
t7=t5*t2
answer=t6+t7"""

MATHQA_3_FCS = MATHQA_3.replace("t6+t7", "t7+t6")
MATHQA_3_PCS = "\n".join(MATHQA_3.split("\n")[:6]) + "\nt4=n0/t3\nt5=n1/t3"

GSM_1 = "n0=2\nn1=10\nn2=5\nt0=n0*n1\nanswer=t0+n2"
GSM_1_FCS = "n0=10\nn1=5\nt0=n0+n1\nanswer=n0+t0"
GSM_1_PCS = "n0=10\nn1=5\nn2=2"

GSM_2 = """n0=20
n1=100
n2=25
n3=2
n4=10
t0=n0/n1*n2
t1=n2-t0
t2=t1+n3
t3=n4*n3
t4=t0*n3
answer=t3+n2 \\
    +t2+t3+t4"""

GSM_2_FCS = """n0=25
n1=2
n2=20
n3=100
n4=10
t0=n0-n1
t1=n2/n3*n0
t2=t0-t1
t3=t2+n4
t4=n0-t3
answer=t4+n3"""

GSM_2_PCS = "n0=2\nn1=25\nn2=20\nn3=100\nn4=10"

EXAMPLES = {
    "MathQA 1": (MATHQA_1, MATHQA_1_FCS, None),
    "MathQA 3": (MATHQA_3, MATHQA_3_FCS, MATHQA_3_PCS),
    "GSM 1": (GSM_1, GSM_1_FCS, GSM_1_PCS),
    "GSM 2": (GSM_2, GSM_2_FCS, GSM_2_PCS),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_self_sampled_correct_solution_is_new_and_fully_correct(name: str):
    reference, fully_correct, _ = EXAMPLES[name]
    buffer = SolutionBuffer.seeded(Problem(name, "?", trace(reference).answer, reference))
    assert buffer.consider(trace(fully_correct)) is Verdict.NEW_FULLY_CORRECT
    assert buffer.fully_correct == (Solution.parse(reference), Solution.parse(fully_correct))


@pytest.mark.parametrize("name", [name for name in EXAMPLES if EXAMPLES[name][2] is not None])
@pytest.mark.parametrize("ending", ["", "\nt9=12345.6\nanswer=t9", "\nt9=1/0", "\nanswer=54321"])
def test_the_self_sampled_beginning_is_new_and_partially_correct(name: str, ending: str):
    reference, _, partially_correct = EXAMPLES[name]
    assert partially_correct is not None
    buffer = SolutionBuffer.seeded(Problem(name, "?", trace(reference).answer, reference))
    assert buffer.consider(trace(partially_correct + ending)) is Verdict.NEW_PARTIALLY_CORRECT
    assert buffer.partially_correct == (Solution.parse(partially_correct),)


def test_the_answers_of_the_paper():
    assert [round(trace(example[0]).answer, 6) for example in EXAMPLES.values()] == [200.0, 0.5, 25, 97]
