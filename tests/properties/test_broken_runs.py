import pytest

from broken_runs import READERS, WHOLE, is_fine, outcome, run
from partway.errors import ModelError


@pytest.mark.volume
@pytest.mark.models
def test_a_run_with_a_damaged_file_is_read_or_refused_in_one_line(unrendered):
    outcomes, broken = run(mutants=60, seed=4)
    assert broken == []
    assert outcomes["RunError"] > 10
    assert outcomes["NoneType"] > 10


@pytest.mark.parametrize("name", READERS)
def test_every_reader_copes_with_the_whole_run(name, unrendered):
    error = outcome(WHOLE, name)
    assert error is None or (isinstance(error, ModelError) and is_fine(error))  # it comes without weights
