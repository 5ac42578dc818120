"""The sums of a run go through a checkpoint to the last bit."""

from collections import Counter
from types import SimpleNamespace

from partway.runs.checkpoints import RunProgress
from partway.training.account import Account, Ledger

ONE = SimpleNamespace(num_processes=1, is_main_process=True)
LEARNING = None, None  # what text becomes tokens, and the objective: not asked here
RUN = SimpleNamespace(append_samples=lambda samples: None, positions=dict)


class NoBuffers:
    """Buffers of no problem, which remember where they were read from."""

    read_from = None
    lack_references = False

    def __init__(self):
        self.drawn = Counter({"p": 3})

    def exchange(self, accelerator):
        return []

    def metrics(self):
        return {}

    def read(self, directory):
        self.read_from = directory


def progress_of(account: Account) -> RunProgress:
    return RunProgress(step=1, ended=False, last_logged=0, **account.sums(ONE, 1))


def test_going_on_and_resuming_add_the_sums_of_two_processes_in_the_same_order(monkeypatch, tmp_path):
    other = [Ledger(loss=0.2)]
    monkeypatch.setattr("partway.training.account.gathered", lambda accelerator, own: [own, other.pop()])
    going_on = Account(RUN, NoBuffers(), *LEARNING, ledger=Ledger(loss=0.1))
    resumed = Account(RUN, NoBuffers(), *LEARNING)
    resumed.go_back_to(progress_of(going_on), tmp_path, is_main=True)
    lines = []
    for account in (going_on, resumed):
        account.ledger.loss += 0.7
        other.append(Ledger())
        lines.append(account.line(ONE, steps=1))
    assert lines[0] == lines[1]
    assert lines[0]["loss"] == (0.1 + 0.2) + 0.7, "as summed at the checkpoint, then what came after"


def test_a_resumed_run_takes_up_totals_and_buffers_and_one_process_the_sums(tmp_path):
    before = Account(
        RUN, NoBuffers(), *LEARNING, ledger=Ledger(loss=0.5, tokens=7), total_loss=3.0, num_tokens=40
    )
    progress = progress_of(before)
    for is_main, ledger in ((True, Ledger(loss=0.5, tokens=7)), (False, Ledger())):
        after = Account(RUN, NoBuffers(), *LEARNING)
        after.buffers.drawn.clear()
        after.go_back_to(progress, tmp_path, is_main=is_main)
        assert (after.total_loss, after.num_tokens, after.ledger) == (3.0, 40, ledger)
        assert after.buffers.read_from == tmp_path
        assert after.buffers.drawn == {"p": 3}


def test_a_line_begins_from_nothing_and_the_last_one_has_the_mean_over_all_steps():
    account = Account(RUN, NoBuffers(), *LEARNING, ledger=Ledger(loss=3.0, tokens=5))
    assert account.line(ONE, steps=2)["loss"] == 1.5
    account.ledger.loss += 1.0
    assert account.line(ONE, steps=1) | {"num_tokens": 5} == account.line(ONE, steps=1) | {"loss": 1.0}
    account.ledger.loss += 2.0
    assert account.last_line(ONE, steps=4)["train_loss"] == 1.5
