"""The kinds of servers: how each is asked for completions, and how each takes new weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from partway.models.completions_client import openai_body
from partway.models.servers.calls import Calls, Trouble
from partway.models.servers.published import Form, Published
from partway.models.settings import SamplingSettings


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be completed, as text and as our own tokens of so many, and those that end a completion."""

    text: str
    tokens: Sequence[int]
    ends: Sequence[int]
    vocabulary: int


class Kind(Protocol):
    """One kind of server, spoken to through `calls`."""

    @property
    def name(self) -> str:
        """What users call it."""

    @property
    def forms(self) -> Mapping[Form, str]:
        """In which weights can be handed to it, and by which route."""

    @property
    def in_place(self) -> tuple[Form, ...]:
        """Those of which new ones take the place of old ones, so that requests must wait."""

    @property
    def tells_log_probs(self) -> bool:
        """Whether it says how probable its tokens were."""

    def body(
        self, asked: Asked, count: int, settings: SamplingSettings, seed: int, weights: Published | None
    ) -> dict[str, Any]:
        """What to send to `/v1/completions`."""

    def load(self, weights: Published) -> None:
        """Let the server draw with these weights; a `Trouble` if it does not, and it is not left paused."""

    def has(self, weights: Published) -> bool:
        """Whether the server draws with these weights already."""

    def serving(self) -> str | None:
        """What the server calls the weights it has, None if it does not say."""

    def is_paused(self) -> bool:
        """Whether it keeps requests waiting until it is resumed."""

    def drop(self, weights: Published) -> None:
        """These weights are asked for no more."""

    def advice(self) -> str:
        """How to start the server so that it takes weights."""


@dataclass(frozen=True)
class Plain:
    """Any OpenAI-style server: it has weights of its own, and nobody can give it others."""

    calls: Calls
    model: str | None = None
    name: str = "OpenAI-style server"
    forms: Mapping[Form, str] = field(default_factory=dict)
    in_place: tuple[Form, ...] = ()
    tells_log_probs: bool = False

    def body(
        self, asked: Asked, count: int, settings: SamplingSettings, seed: int, weights: Published | None
    ) -> dict[str, Any]:
        body = openai_body(asked.text, count, settings, seed, self.model)
        return body | ({"top_k": settings.top_k} if settings.top_k else {})

    def load(self, weights: Published) -> None:
        raise Trouble("it takes no weights")

    def has(self, weights: Published) -> bool:
        return False

    def serving(self) -> str | None:
        return None

    def is_paused(self) -> bool:
        return False

    def drop(self, weights: Published) -> None:
        """It has none of ours."""

    def advice(self) -> str:
        return "set weight_sync to none to draw with its own"


@dataclass(frozen=True)
class TransformersServe:
    """`transformers serve`, started without a model: the directory of the weights is the model's name.

    It reads text only, answers with one completion whatever `n` says, and keeps every model it was asked for
    in memory until it is reset. All settings of `generate` are stated, as it would take the model's own.
    """

    calls: Calls
    name: str = "transformers serve"
    forms: Mapping[Form, str] = field(default_factory=lambda: {"full": "a request names their directory"})
    in_place: tuple[Form, ...] = ()
    tells_log_probs: bool = False

    def body(
        self, asked: Asked, count: int, settings: SamplingSettings, seed: int, weights: Published | None
    ) -> dict[str, Any]:
        generation = {
            "max_new_tokens": settings.max_completion_length,
            "eos_token_id": list(asked.ends),
            "pad_token_id": asked.ends[0],
            "do_sample": settings.temperature > 0,
        }
        if settings.temperature > 0:
            generation |= {
                "temperature": settings.temperature,
                "top_p": settings.top_p,
                "top_k": settings.top_k,
            }
        model = None if weights is None else str(weights.directory)
        body = {"prompt": asked.text, "seed": seed, "generation_config": json.dumps(generation)}
        return body | ({} if model is None else {"model": model})

    def load(self, weights: Published) -> None:
        self.calls.post("/reset")  # or every version would stay in memory
        body = {"prompt": "1", "max_tokens": 1, "model": str(weights.directory)}
        self.calls.post("/v1/completions", body)

    def has(self, weights: Published) -> bool:
        return True  # it loads what it is asked for

    def serving(self) -> str | None:
        return None

    def is_paused(self) -> bool:
        return False

    def drop(self, weights: Published) -> None:
        """Gone with the next reset."""

    def advice(self) -> str:
        return "it takes no adapters, and whole weights only if it was started without the name of a model"
