"""The generator of word problems: reproducible, varied, sensible, well written, with paths that work out."""

import hashlib
import json
import re
import time
from random import Random

import pytest

from storyproblems import (
    StoryError,
    StoryProblem,
    generate_problems,
    generate_splits,
    situation_names,
    solution_paths,
)
from storyproblems.amounts import parse_amount
from storyproblems.language import BOYS, GIRLS, NUMBER_WORDS, Person, plural, polished
from storyproblems.situations import OPENINGS, SEQUELS_BY_KIND
from storyproblems.situations.sequels import SEQUELS
from storyproblems.templates import Narrator, comparisons, parse_template

STEP = re.compile(r"(n\d+|t\d+|answer) = .+")


@pytest.fixture(scope="module")
def problems() -> list[StoryProblem]:
    return generate_problems(1_200, seed=11)


def digest(problems: list[StoryProblem]) -> str:
    rows = [(p.id, p.question, p.answer, "\n".join(p.path), p.meta) for p in problems]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def computed(path: tuple[str, ...]) -> float:
    """What CPython computes: the steps are the generator's own, so they may be run here."""
    scope = {}
    exec("\n".join(path), scope)
    return scope["answer"]


def names_of(situation):
    clauses = [clause for options in situation.clauses.values() for clause in options]
    templates = [clause.template for clause in clauses] + [ask.template for ask in situation.asks]
    formulas = {name for clause in clauses for name in clause.formulas}
    return formulas | {name for template in templates for name in template.amounts}


def test_the_same_seed_gives_the_same_bytes_on_every_python():
    assert digest(generate_problems(50, seed=0)) == (
        "982c788598b32463a8233bf19802bc77fa496701bfd9a1f7ea81ecee0ed06907"
    )
    assert generate_problems(20, seed=0) != generate_problems(20, seed=1)


def test_splits_share_no_question_and_ids_are_unique():
    splits = generate_splits(300, 100, 100, seed=5, difficulty="easy")
    assert [len(split) for split in (splits.train, splits.dev, splits.test)] == [300, 100, 100]
    everything = [*splits.train, *splits.dev, *splits.test]
    assert len({problem.question for problem in everything}) == len(everything)
    assert len({problem.id for problem in everything}) == len(everything)


def test_test_and_dev_stay_the_same_when_train_grows():
    small, large = (generate_splits(train, 30, 40, seed=3) for train in (10, 60))
    assert small.test == large.test
    assert small.dev == large.dev
    assert small.train == large.train[:10]


@pytest.mark.parametrize("holdout", [["fence", "ages"], 7])
def test_situations_held_out_are_all_of_test_and_nowhere_else(holdout):
    splits = generate_splits(60, 30, 30, seed=1, holdout_situations=holdout)
    held_out = set(splits.held_out)
    assert held_out == set(holdout) if isinstance(holdout, list) else len(held_out) == holdout
    assert {problem.meta["situation"] for problem in splits.test} <= held_out
    assert held_out.isdisjoint(problem.meta["situation"] for problem in [*splits.train, *splits.dev])


@pytest.mark.volume
def test_every_situation_is_told_in_many_ways():
    assert len(situation_names()) >= 30
    for name in situation_names():
        told = generate_problems(40, seed=2, situations=[name])
        people = "|".join(GIRLS + BOYS)
        shapes = {re.sub(rf"\b(?:{people}|[Hh]e|[Ss]he|[Hh]is|[Hh]er|\d+)\b", "_", p.question) for p in told}
        assert len(shapes) >= 20, name


def test_paths_are_written_as_in_the_paper_and_work_out(problems):
    for problem in problems:
        steps = problem.path
        kinds = [re.match(r"n|t|answer", step)[0] for step in steps]
        assert all(STEP.fullmatch(step) for step in steps)
        assert kinds == sorted(kinds, key=["n", "t", "answer"].index), problem.path
        assert kinds.count("answer") == 1
        assert computed(problem.path) == pytest.approx(problem.answer, abs=1e-4), problem.question
        assert any(re.search(r"[-+*/]", step) for step in steps)


def test_every_number_of_the_reference_is_in_the_question_or_implied(problems):
    for problem in problems:
        words = problem.question.lower().replace("$", "")
        for value in problem.meta["numbers"].values():
            said = [f"{value:g}", f"{value:.2f}", f"{value}"]
            said += [NUMBER_WORDS[value]] if isinstance(value, int) and value <= 10 else []
            pattern = r"(?<![\d.])(?:" + "|".join(map(re.escape, said)) + r")(?![\d]|\.\d)"
            assert re.search(pattern, words), (value, problem.question)


def test_questions_are_clean_english(problems):
    for problem in problems:
        question = problem.question
        assert not re.search(r"[@{}\[\]|_]|  | [.,?]|//|None", question), question
        assert not re.search(r"\b[Aa] (?:[aeio]|8|11\b|18\b)|\b[Aa]n [^aeiouh81]", question), question
        assert re.search(r"[.?!] [a-z]", question) is None, question
        assert re.search(r"\b(\w+) \1\b", question) is None, question
        assert question[0].isupper() or question[0].isdigit()
        assert question.endswith("?")
        assert len(question.split()) <= 70


def test_money_and_counts_make_sense(problems):
    for problem in problems:
        values = [problem.answer, *problem.meta["numbers"].values()]
        assert all(0 < value <= 20_000 for value in values)
        assert all(round(value, 2) == value for value in values)
        if re.search(r"How many (people|children|cards|books|boxes)", problem.question):
            assert isinstance(problem.answer, int)
        assert not re.search(r"\$\d+\.\d(?!\d)", problem.question), "money has two decimals or none"


def test_distractors_are_in_the_question_only(problems):
    distracted = [problem for problem in problems if problem.meta["distractors"]]
    assert 0.1 < len(distracted) / len(problems) < 0.3
    assert all("noise" not in problem.meta["formulas"].values() for problem in distracted)
    assert all("noise" not in problem.meta["numbers"] for problem in distracted)


@pytest.mark.parametrize(("level", "low", "high"), [("easy", 2, 3), ("medium", 3, 5), ("hard", 5, 8)])
def test_difficulty_is_how_many_operations_it_takes(level, low, high):
    lengths = {problem.meta["operations"] for problem in generate_problems(200, difficulty=level)}
    assert lengths == set(range(low, high + 1))


def test_mixed_problems_take_two_to_eight_operations(problems):
    assert {problem.meta["operations"] for problem in problems} == set(range(2, 9))


def test_easy_problems_have_neither_cents_nor_distractors():
    for problem in generate_problems(200, difficulty="easy"):
        assert not problem.meta["distractors"]
        assert not re.search(r"\$\d+\.\d", problem.question)


def test_a_few_hundred_words_are_enough(problems):
    words = {word for p in problems for word in re.findall(r"[a-z]+", p.question.lower().replace("'s", ""))}
    assert len(words) < 800


@pytest.mark.volume
def test_every_problem_has_many_solution_paths(problems):
    rng = Random(0)
    for problem in problems[:60]:
        paths = solution_paths(problem.meta, rng, 30)
        assert len(paths) == len(set(paths)) >= 8, problem.question
        for path in paths:
            assert computed(path) == pytest.approx(problem.answer, abs=1e-4), path


def test_paths_use_the_algebra_people_use():
    meta = {
        "numbers": {"price": 40, "off": 25, "n": 3, "paid": 100},
        "formulas": {"total": "n * (price - price * off / 100)", "answer": "paid - total"},
    }
    paths = solution_paths(meta, Random(0), 400)
    lines = {step for path in paths for step in path}
    texts = {"\n".join(path) for path in paths}
    assert len(paths) == 400
    assert any(re.search(r"100 - n\d", line) for line in lines), "the complement of a percentage"
    assert any(re.search(r"n\d \* n\d - ", line) for line in lines), "brackets multiplied out"
    assert any("n0 = 100" in text for text in texts), "constants in another order"
    assert {len(path) for path in paths} >= {6, 7, 8, 9}, "merged and split steps"


def test_paths_survive_a_round_trip_through_json(problems):
    meta = problems[0].meta
    again = json.loads(json.dumps(meta))
    assert solution_paths(meta, Random(4), 10) == solution_paths(again, Random(4), 10)


def test_a_thousand_problems_take_about_a_second():
    start = time.process_time()
    generate_problems(1_000, seed=8)
    assert time.process_time() - start < 4


def test_quantities_of_sequels_have_names_of_their_own():
    for index, sequel in enumerate(SEQUELS):
        others = [*OPENINGS.values(), *SEQUELS[:index]]
        assert all(names_of(sequel).isdisjoint(names_of(other)) for other in others), sequel.name


def test_every_kind_of_result_can_go_on():
    for situation in (*OPENINGS.values(), *SEQUELS):
        for ask in situation.asks:
            assert not ask.kind or SEQUELS_BY_KIND[ask.kind], (situation.name, ask.kind)


def test_clauses_need_only_what_is_told_before_them():
    for situation in (*OPENINGS.values(), *SEQUELS):
        told = {"it"} if situation.follows else set()
        for role, clauses in situation.clauses.items():
            for clause in clauses:
                given = told | clause.template.amounts.keys() | clause.formulas.keys()
                assert clause.needs <= told, (situation.name, role)
                assert set(role.split()) <= given, (situation.name, role)
            told |= set(role.split())


def test_unknown_settings_are_said_plainly():
    with pytest.raises(StoryError, match="did you mean fence"):
        generate_splits(1, 1, 1, holdout_situations=["fense"])
    with pytest.raises(StoryError, match="unknown difficulty 'silly'; choose from easy, medium, hard, mixed"):
        generate_problems(1, difficulty="silly")
    with pytest.raises(StoryError, match="all 60 situations are held out"):
        generate_splits(1, 1, 1, holdout_situations=situation_names())
    with pytest.raises(StoryError, match="found only 0 of 5 hard questions"):
        generate_problems(5, difficulty="hard", situations=["paint-mix"])
    with pytest.raises(StoryError, match="no quantities"):
        solution_paths({}, Random(0), 3)


def test_plurals_and_articles():
    assert [plural(word) for word in ("box", "candy", "toy", "loaf of bread", "child", "potato")] == [
        "boxes", "candies", "toys", "loaves of bread", "children", "potatoes",
    ]  # fmt: skip
    assert polished("a apple  costs $1. a hour later, a pear does.") == (
        "An apple costs $1. An hour later, a pear does."
    )


def test_amounts_fit_what_is_known():
    rng = Random(0)
    assert {parse_amount("3..12|x").draw({"x": 20}, False, rng) for _ in range(50)} == {4, 5, 10}
    assert {parse_amount("2..4*x").draw({"x": 5}, False, rng) for _ in range(50)} == {10, 15, 20}
    assert {parse_amount("%x").draw({"x": 20}, False, rng) for _ in range(200)} >= {5, 10, 50, 75}
    assert {parse_amount("part x").draw({"x": 9}, False, rng) for _ in range(50)} == {3}
    assert parse_amount("5..9|x").draw({"x": 7}, False, rng) is None
    assert parse_amount("$2..3").say(2.5, rng) == "$2.50"
    assert parse_amount("part x").say(3, rng) == "a third"


def test_a_comparison_can_be_said_in_five_ways():
    ways = [text for text, _ in comparisons("@A has {y:3..9 pears than x:apples}.")]
    assert ways == [
        "@A has {y:3..9} pears.",
        "@A has {more_y:2..12} more pears than apples.",
        "@A has {less_y:2..12} fewer pears than apples.",
        "@A has {times_y:times} as many pears as apples.",
        "@A has {part_y:part x} as many pears as apples.",
    ]


def test_pronouns_are_used_only_when_it_is_clear_who_is_meant():
    ana, zoe = Person("Ana", True), Person("Zoe", True)
    alone, together = Narrator(Random(0), (ana, zoe)), Narrator(Random(0), (ana, zoe))
    assert alone.tell(parse_template("@A takes @A's hat."), {}, {}) == "Ana takes her hat."
    assert together.tell(parse_template("@A calls @B."), {}, {}) == "Ana calls Zoe."
    later = [together.tell(parse_template("@A goes home with @A's hat."), {}, {}) for _ in range(20)]
    assert set(later) == {"Ana goes home with her hat."}
