"""Publishes the final model: writes its card and uploads it to the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from huggingface_hub import HfApi

from partway import registry
from partway.buffer.rules import SELF_SAMPLING
from partway.cli.options import counted
from partway.errors import ConfigError, RunError, one_line
from partway.files import atomic_directory
from partway.models.loading import HUB_ERRORS, load_model, no_progress_bar
from partway.runs import Run
from partway.training.callbacks import Watcher
from partway.training.config import SelfSamplingConfig

if TYPE_CHECKING:
    from partway.training import SelfSamplingTrainer


class CardWriter(Watcher):
    """Writes the card of the final model."""

    def __init__(self, trainer: SelfSamplingTrainer) -> None:
        self.trainer = trainer

    def finishing(self, directory: Path, step: int) -> None:
        is_chat = bool(self.trainer.recorder.environment.get("chat_template"))
        model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        if is_adapter := _is_adapter(model):
            model.generation_config.save_pretrained(directory)  # where answers end, which peft leaves out
        card = model_card(self.trainer.args, self.trainer.run, step, is_chat=is_chat, is_adapter=is_adapter)
        (directory / "README.md").write_text(card, encoding="utf-8")


def model_card(
    config: SelfSamplingConfig, run: Run, step: int, *, is_chat: bool = False, is_adapter: bool = False
) -> str:
    """A README.md that says what the model of a `step` is, how it was trained and how well it did."""
    library = "peft" if is_adapter else "transformers"
    head = {"library_name": library, "pipeline_tag": "text-generation", "tags": ["partway"]}
    # `tiny` is made anew for each run, and what folders add has a name of ours: the Hub knows neither.
    if config.model_name_or_path not in ("tiny", *registry.parts("models")):
        head["base_model"] = config.model_name_or_path
    asked = config.built_language.instruction
    plain = f"`{asked.comment}question` and a newline"
    _, learned = SELF_SAMPLING[config.self_sampling]
    lines = [
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---",
        "# A model that solves problems by writing programs",
        f"Fine-tuned from `{config.model_name_or_path}` with partway on {learned}, with the "
        f"objective `{config.objective}`. These are the weights of step {step}.",
        f"It reads {'a question in its chat format' if is_chat else plain}, and "
        f"writes a program, one step per line, that ends when it {asked.ending}.",
        "An adapter, which transformers loads with its base if peft is installed:" if is_adapter else "",
        _loading((config.push_to_hub and config.hub_model_id) or str(run.final)),
    ]
    if (evaluation := run.evaluations().get(step)) is not None:  # of other weights it would not be true
        lines += ["## Evaluation", _table(evaluation)]
    settings = yaml.safe_dump(config.settings, sort_keys=False)
    lines += ["## Settings", f"```yaml\n{settings}```"]
    return "\n\n".join(filter(None, lines)) + "\n"


def _is_adapter(model: Any) -> bool:
    return hasattr(model, "peft_config")


def _loading(name: str) -> str:
    """The lines that load the model of a directory, or of the Hub."""
    return (
        "```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n"
        f'model = AutoModelForCausalLM.from_pretrained("{name}")\n'
        f'tokenizer = AutoTokenizer.from_pretrained("{name}")\n```'
    )


def write_merged(name: Path, directory: Path) -> None:
    """Write the model of a run whole: an adapter is added to the weights it was trained on."""
    loaded = load_model(name)
    model: Any = loaded.model
    whole = model.merge_and_unload() if _is_adapter(model) else model
    with no_progress_bar(), atomic_directory(directory) as fresh:
        whole.save_pretrained(fresh)
        loaded.codec.tokenizer.save_pretrained(fresh)


def _table(summary: dict[str, Any]) -> str:
    rows = [
        f"| {name} | {m['value']:.1%} | {m['low']:.1%} to {m['high']:.1%} |"
        for name, m in summary["metrics"].items()
    ]
    title = f"{counted(summary['problems'], 'problem')}, at step {summary['step']}:"
    return "\n".join([title, "", "| metric | value | 95% interval |", "| --- | --- | --- |", *rows])


@contextmanager
def reaching_hub() -> Iterator[None]:
    """Before training: a Hub that cannot be used is a mistake in the settings."""
    try:
        yield
    except (*HUB_ERRORS, ValueError) as error:
        raise ConfigError(
            f"push_to_hub is true, but the Hub cannot be used ({one_line(error, lines=1)}); "
            "log in with `hf auth login`, or set push_to_hub to false and upload final/ later"
        ) from error


def upload(
    trainer: SelfSamplingTrainer,
    message: str | None,
    *,
    token: str | None = None,
    revision: str | None = None,
    **_: Any,
) -> Any:
    """Upload the final model of a trainer's run; after training, a failure loses nothing.

    It always waits for the end: there is nothing left to do meanwhile.
    """
    if not trainer.is_world_process_zero():
        return None
    if trainer.hub_model_id is None:
        trainer.init_hf_repo(token)
    directory, name = trainer.run.final, trainer.hub_model_id
    try:
        commit = HfApi().upload_folder(
            repo_id=name,
            folder_path=directory,
            commit_message=message,
            token=token or trainer.args.hub_token,
            revision=revision or trainer.args.hub_revision,
        )
    except (*HUB_ERRORS, ValueError) as error:  # ValueError: not the name of a repository
        raise RunError(
            f"{directory}: the model is here, but could not be uploaded ({one_line(error, lines=1)}); "
            f"try again with: hf upload {name} {directory}"
        ) from error
    trainer.recorder.say(f"uploaded {directory} to {name}")
    return commit
