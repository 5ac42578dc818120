"""SGLang: weights and adapters are loaded from directories while it serves."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from partway.models.completions_client import openai_body, shortened
from partway.models.servers.calls import Calls, Trouble
from partway.models.servers.kinds import Asked
from partway.models.servers.published import Form, Published
from partway.models.settings import SamplingSettings

LOADING = 600.0  # seconds for weights
ADAPTERS = frozenset({"/load_lora_adapter", "/unload_lora_adapter"})


@dataclass(frozen=True)
class Sglang:
    """An SGLang server. It drains and pauses by itself while weights are loaded."""

    calls: Calls
    model: str | None
    routes: frozenset[str]
    name: str = "SGLang"
    in_place: tuple[Form, ...] = ("full",)
    tells_log_probs: bool = False

    @property
    def forms(self) -> dict[Form, str]:
        full: dict[Form, str] = {"full": "/update_weights_from_disk"}
        return full | {"lora": "/load_lora_adapter"} if self.routes >= ADAPTERS else full

    def body(
        self, asked: Asked, count: int, settings: SamplingSettings, seed: int, weights: Published | None
    ) -> dict[str, Any]:
        model = self.model
        if weights is not None and weights.form == "lora":
            model = f"{self.model}:{weights.name}"
        top_k = settings.top_k or -1  # all
        return openai_body(asked.tokens, count, settings, seed, model) | {
            "top_k": top_k,
            "stop_token_ids": list(asked.ends),
        }

    def load(self, weights: Published) -> None:
        if weights.form == "lora":
            body = {"lora_name": weights.name, "lora_path": str(weights.directory)}
            self._must_succeed(self.calls.post("/load_lora_adapter", body, LOADING))
            return
        directory = str(weights.directory)
        body = {"model_path": directory, "weight_version": directory}
        self._must_succeed(self.calls.post("/update_weights_from_disk", body, LOADING))
        if not self.has(weights):
            raise Trouble(f"it says its weights are not those of {directory}")

    def has(self, weights: Published) -> bool:
        if weights.form == "lora":
            return True  # a name it does not know is refused, and asked of another
        return self.serving() == str(weights.directory)

    def serving(self) -> str | None:
        said = self.calls.get("/get_model_info")
        path = said.get("model_path") if isinstance(said, Mapping) else None
        return path if isinstance(path, str) else None

    def is_paused(self) -> bool:
        return False

    def drop(self, weights: Published) -> None:
        if weights.form == "lora":
            with suppress(Trouble):  # a server that was restarted does not have it
                self.calls.post("/unload_lora_adapter", {"lora_name": weights.name})

    def advice(self) -> str:
        return "start it with --enable-lora and --max-lora-rank to give it adapters"

    def _must_succeed(self, said: Any) -> None:
        if not (isinstance(said, Mapping) and said.get("success")):
            reason = said.get("message") or said.get("error_message") if isinstance(said, Mapping) else said
            raise Trouble(f"it did not load the weights: {shortened(str(reason))}")
