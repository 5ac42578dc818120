"""The final model on the Hugging Face Hub, and what is said when it cannot be brought there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi

from partway.errors import ConfigError, RunError
from partway.models.loading import HUB_ERRORS


@contextmanager
def reaching_hub() -> Iterator[None]:
    """Before training: a Hub that cannot be used is a mistake in the settings."""
    try:
        yield
    except (*HUB_ERRORS, ValueError) as error:
        raise ConfigError(
            f"push_to_hub is true, but the Hub cannot be used ({_first_line(error)}); "
            "log in with `hf auth login`, or set push_to_hub to false and upload final/ later"
        ) from error


def upload(
    directory: Path, name: str, *, message: str | None, token: str | None, revision: str | None
) -> Any:
    """Upload a directory as the model `name`; after training, a failure loses nothing."""
    try:
        return HfApi().upload_folder(
            repo_id=name,
            folder_path=directory,
            commit_message=message,
            token=token,
            revision=revision,
        )
    except (*HUB_ERRORS, ValueError) as error:  # ValueError: a name that can be no repository's
        raise RunError(
            f"{directory}: the model is here, but could not be uploaded ({_first_line(error)}); "
            f"try again with: hf upload {name} {directory}"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
