"""vLLM: whole weights are reloaded in place in its developer mode; adapters are loaded under new names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from safetensors.torch import save_file

from partway.models.completions_client import openai_body
from partway.models.servers.calls import Calls, Trouble
from partway.models.servers.kinds import Asked
from partway.models.servers.published import Form, Published
from partway.models.settings import SamplingSettings

LOADING = 600.0  # seconds for weights
RELOADING = frozenset({"/pause", "/resume", "/collective_rpc", "/reset_prefix_cache", "/weight_info"})
ADAPTERS = frozenset({"/v1/load_lora_adapter", "/v1/unload_lora_adapter"})


@dataclass(frozen=True)
class Vllm:
    """`vllm serve` with what its routes allow."""

    calls: Calls
    model: str | None
    routes: frozenset[str]
    name: str = "vLLM"
    in_place: tuple[Form, ...] = ("full",)
    tells_log_probs: bool = True

    @property
    def forms(self) -> dict[Form, str]:
        full: dict[Form, str] = {"full": "/collective_rpc reload_weights"}
        lora: dict[Form, str] = {"lora": "/v1/load_lora_adapter"}
        return (full if self.routes >= RELOADING else {}) | (lora if self.routes >= ADAPTERS else {})

    def body(
        self, asked: Asked, count: int, settings: SamplingSettings, seed: int, weights: Published | None
    ) -> dict[str, Any]:
        """Our own tokens there, and theirs with their log-probs back.

        Without the seed: each sample with one is drawn apart, which is slow, and on a CPU vLLM 0.32 ends with
        an error as soon as such a request has to wait in the middle of its prompt.
        """
        is_adapter = weights is not None and weights.form == "lora"
        model = weights.name if is_adapter and weights is not None else self.model
        body = openai_body(asked.tokens, count, settings, seed, model)
        del body["seed"]
        return body | {
            "top_k": settings.top_k,
            "stop_token_ids": list(asked.ends),
            "return_token_ids": True,
            "logprobs": 0,
        }

    def load(self, weights: Published) -> None:
        if weights.form == "lora":
            self._load_adapter(weights)
        else:
            self._reload(weights)

    def has(self, weights: Published) -> bool:
        if weights.form == "lora":
            return weights.name in self._models()
        return self.serving() == str(weights.directory)

    def serving(self) -> str | None:
        if "/weight_info" not in self.routes:
            return None
        said = self.calls.get("/weight_info")
        version = said.get("weight_version") if isinstance(said, dict) else None
        return version if isinstance(version, str) else None

    def is_paused(self) -> bool:
        said = self.calls.get("/is_paused") if "/is_paused" in self.routes else {}
        return isinstance(said, dict) and said.get("is_paused") is True

    def drop(self, weights: Published) -> None:
        if weights.form == "lora":
            with suppress(Trouble):  # a server that was restarted does not have it
                self.calls.tell("/v1/unload_lora_adapter", {"lora_name": weights.name})

    def advice(self) -> str:
        return (
            "start it with VLLM_SERVER_DEV_MODE=1 for whole weights, or with --enable-lora and "
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 for adapters"
        )

    def _load_adapter(self, weights: Published) -> None:
        if weights.name in self._models():  # of an earlier life of the run
            self.drop(weights)
        self.calls.tell(
            "/v1/load_lora_adapter",
            {"lora_name": weights.name, "lora_path": str(weights.directory)},
            LOADING,
        )

    def _reload(self, weights: Published) -> None:
        self._check_visible(weights)
        with self._paused():
            self._rpc_reload({"weights_path": str(weights.directory)})
            self.calls.post("/reset_prefix_cache")  # its keys and values are those of the old weights
            self.calls.post("/update_weight_version", {"new_version": str(weights.directory)})
        if (found := self.serving()) != str(weights.directory):
            raise Trouble(f"it says its weights are {found!r:.100}, expected {weights.directory}")

    def _check_visible(self, weights: Published) -> None:
        """Make sure that the server can read the directory.

        A path it cannot read leaves it with half-loaded weights, and every later request fails. Reading a
        file without any weights, as they are and not as a checkpoint, fails or succeeds without changing any.
        """
        probe = weights.directory / "visible"
        probe.mkdir(exist_ok=True)
        # Servers load side by side: each makes the whole file before it has the name that all of them read.
        part = probe / f"{uuid4().hex}.part"
        save_file({}, part)
        part.replace(probe / "model.safetensors")
        try:
            self._rpc_reload({"weights_path": str(probe), "is_checkpoint_format": False})
        except Trouble as trouble:
            if trouble.status is None:
                raise
            raise Trouble(
                f"it cannot read {weights.directory} ({trouble}); put output_dir where all servers see it "
                "under the same path"
            ) from trouble

    def _rpc_reload(self, arguments: dict[str, Any]) -> None:
        self.calls.post("/collective_rpc", {"method": "reload_weights", "kwargs": arguments}, LOADING)

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """While new requests wait; the server goes on whatever happens in between."""
        try:
            self.calls.post("/pause?mode=wait", timeout=LOADING)
            yield
        finally:
            try:
                self.calls.post("/resume")
            except Trouble:
                self.calls.post("/resume")  # a server that is left paused would never answer again

    def _models(self) -> list[str]:
        said = self.calls.get("/v1/models")
        try:
            return [str(one["id"]) for one in said["data"]]
        except (LookupError, TypeError):
            raise Trouble("/v1/models gave no list of models") from None
