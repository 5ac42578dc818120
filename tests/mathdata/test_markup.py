"""GSM8K's markup in rows of any layout: its arithmetic becomes a reference."""

from partway import load_problems


def test_gsm8k_markup_becomes_a_reference_where_it_can() -> None:
    marked, bare = load_problems(
        [
            {
                "question": "48 clips in April, half as many in May?",
                "answer": "48/2 = <<48/2=24>>24\n#### 24",
            },
            {"question": "How many?", "answer": "Nobody knows why.\n#### $1,000"},
        ]
    )
    assert marked.answer == 24
    assert marked.reference is not None
    assert (bare.answer, bare.reference) == (1000, None)


def test_gsm8k_markup_in_a_conversation_becomes_a_reference() -> None:
    turns = [
        {"role": "user", "content": "A box has 6 rows of 7 eggs. How many eggs?"},
        {"role": "assistant", "content": "It has 6*7 = <<6*7=42>>42 eggs.\n#### 42"},
    ]
    problem = load_problems([{"messages": turns}])[0]
    assert problem.answer == 42
    assert problem.reference is not None


def test_the_bare_question_and_markup_of_verls_gsm8k_are_used() -> None:
    question = "48 clips in April, half as many in May?"
    row = {
        "prompt": [{"role": "user", "content": f"{question} Let's think step by step."}],
        "reward_model": {"style": "rule", "ground_truth": "24"},
        "extra_info": {"index": 0, "question": question, "answer": "48/2 = <<48/2=24>>24\n#### 24"},
    }
    problem = load_problems([row])[0]
    assert (problem.question, problem.answer) == (question, 24)
    assert problem.reference is not None
