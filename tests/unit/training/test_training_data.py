"""What may be given to a trainer as its data: problems, rows, tables; and what it says of them."""

from typing import Any

import pytest

from partway.errors import ProblemError
from partway.training import SelfSamplingConfig, SelfSamplingTrainer

ROWS = [{"problem": f"{n} and 1?", "solution": f"n0 = {n}\nanswer = n0 + 1"} for n in range(3)]
BARE = [{"question": f"{n} and 1?", "answer": n + 1, "output": "in words"} for n in range(3)]


def trainer(tmp_path: Any, data: Any, **settings: Any) -> SelfSamplingTrainer:
    args = SelfSamplingConfig(output_dir=str(tmp_path / "run"), use_cpu=True, report_to=[], **settings)
    return SelfSamplingTrainer("tiny", args, data)


def test_rows_and_tables_are_read_like_files(tmp_path: Any) -> None:
    datasets, pandas = pytest.importorskip("datasets"), pytest.importorskip("pandas")
    table = datasets.Dataset.from_list(ROWS)
    found = [trainer(tmp_path, data).train_dataset for data in (ROWS, table, pandas.DataFrame(ROWS))]
    assert [problem.answer for problem in found[0]] == [1, 2, 3]
    assert found[0] == found[1] == found[2]


def test_a_stream_is_read_to_its_end(tmp_path: Any) -> None:
    datasets = pytest.importorskip("datasets")
    stream = datasets.Dataset.from_list(ROWS).to_iterable_dataset()
    assert len(trainer(tmp_path, stream).train_dataset) == 3


def test_training_without_any_reference_is_said_loudly(tmp_path: Any, capsys: Any) -> None:
    trainer(tmp_path, BARE)
    said = capsys.readouterr().err
    assert "partway: of 3 problems NONE has a reference" in said
    assert "columns not used: output" in said
    trainer(tmp_path, ROWS)
    assert capsys.readouterr().err == ""


def test_training_on_answers_that_no_number_is_equal_to_is_said(tmp_path: Any, capsys: Any) -> None:
    trainer(tmp_path, [*ROWS, {"question": "How many apples?", "answer": "7 apples"}])
    said = capsys.readouterr().err
    assert (
        "partway: 1 of 4 answers begin with a number but are text, to which no number is equal: '7 app"
        in said
    )


def test_learning_from_references_only_is_refused_if_there_are_none(tmp_path: Any) -> None:
    with pytest.raises(ProblemError, match="self_sampling is none, but of 3 problems NONE has a reference"):
        trainer(tmp_path, BARE, self_sampling="none", objective="mle")
