"""How much of the code a training step passes: a reader who follows one reads these files."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from training_cases import apples

from partway import registry
from partway.language import python
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from straightline.parsing import known_lines

SOURCE = Path(registry.__file__).parent.parent


@contextmanager
def noting_files(found: set[str]) -> Iterator[None]:
    """While open, files of this repository are noted whose functions are called."""

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            found.add(Path(frame.f_code.co_filename).relative_to(SOURCE).as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def test_a_step_passes_few_files(tmp_path, monkeypatch):
    """From a problem to a loss, by the method alone: these numbers may only fall."""
    monkeypatch.setattr(registry, "_found", lambda: ((), ()))
    config = SelfSamplingConfig(
        str(tmp_path / "run"),
        config_overrides="hidden_size=32,num_hidden_layers=1",
        max_steps=1,
        per_device_train_batch_size=3,
        max_completion_length=20,
        save_strategy="no",
        use_cpu=True,
        report_to="none",
    )
    trainer, found = SelfSamplingTrainer("tiny", config, apples(3)), set[str]()
    step = trainer.training_step

    def noted(*arguments):
        python.forget()  # what was run before counts, too
        known_lines.clear()
        with noting_files(found):
            return step(*arguments)

    monkeypatch.setattr(trainer, "training_step", noted)
    trainer.train()
    method = sorted(one for one in found if one.startswith("partway/"))
    assert len(method) <= 23, " ".join(method)
    assert len(found - {*method}) <= 7, sorted(found - {*method})  # of straightline, which runs programs
