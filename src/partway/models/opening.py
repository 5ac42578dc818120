"""Opening an engine by name: a model that is loaded here, or one on a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from partway.execution import PYTHON, Programs
from partway.models.engine import Engine
from partway.models.prompts import AS_TRAINED, Asking, Prompt

if TYPE_CHECKING:
    from partway.models.local_engine import LocalEngine


@contextmanager
def open_engine(
    model: str | None,
    *,
    url: str | None = None,
    programs: Programs = PYTHON,
    device: str | None = None,
    asking: Asking = AS_TRAINED,
    prompt: Prompt | None = None,
    concurrency: int = 8,
    extra_body: Mapping[str, Any] | None = None,
) -> Iterator[Engine]:
    """The engine of a model: on a `device` of this machine, `asking` it so, or on the server at `url`."""
    if url is None:
        assert model is not None, "only a server has a model that need not be named"
        yield load_engine(model, programs=programs, device=device, asking=asking, prompt=prompt)
        return
    from partway.models.remote_engine import RemoteEngine

    with RemoteEngine(
        url,
        model=model,
        prompt=prompt,
        programs=programs,
        concurrency=concurrency,
        extra_body=extra_body,
    ) as engine:
        yield engine


def load_engine(
    model: str,
    *,
    programs: Programs = PYTHON,
    device: str | None = None,
    asking: Asking = AS_TRAINED,
    prompt: Prompt | None = None,
) -> LocalEngine:
    """The sampling tree on a model that is loaded here: whatever `load_model` takes."""
    from partway.models.loading import load_model
    from partway.models.local_engine import LocalEngine

    loaded = load_model(model, device=device, asking=asking)
    if prompt is not None:
        loaded = replace(loaded, codec=replace(loaded.codec, question=prompt))
    return LocalEngine(loaded, programs=programs)
