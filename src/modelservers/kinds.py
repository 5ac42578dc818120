"""The kinds of servers: how to recognise one, how to ask it for completions, how it takes weights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal
from uuid import uuid4

from modelservers.calls import Calls, Trouble, shortened
from partway.models.engine import SamplingSettings

LOADING = 600.0  # seconds for weights
LONGEST_NAME = 2_000  # characters; it is sent with every request

Form = Literal["full", "lora"]
FORMS: dict[Form, str] = {"full": "whole weights", "lora": "adapters"}


@dataclass(frozen=True, slots=True)
class Published:
    """The weights of training step `version`, in a directory: a whole model, or an adapter to one."""

    version: int
    directory: Path
    form: Form

    @property
    def name(self) -> str:
        """What a server calls an adapter of this version."""
        return f"partway-{self.version}"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be completed: as text and, if its tokenizer is here, as tokens.

    `ends` are the tokens that end a completion, `stops` the texts, `vocabulary` is how many tokens the model
    has, and `model` where its tokenizer comes from.
    """

    text: str
    tokens: Sequence[int] = ()
    ends: Sequence[int] = ()
    stops: Sequence[str] = ()
    vocabulary: int = 0
    model: str | None = None


@dataclass(frozen=True)
class Server:
    """Any OpenAI-style server: it has weights of its own, and nobody can give it others.

    The other kinds can do more. `in_place` are the forms of weights that take the place of old ones, so that
    requests must wait.
    """

    calls: Calls
    model: str | None = None  # what it calls its model
    version: str = ""
    routes: frozenset[str] = frozenset()

    name: ClassVar[str] = "OpenAI-style server"
    in_place: ClassVar[tuple[Form, ...]] = ()
    tells_log_probs: ClassVar[bool] = False

    @property
    def forms(self) -> Mapping[Form, str]:
        """In which weights can be handed to it, and by which route."""
        return {}

    def body(
        self, asked: Asked, count: int, settings: SamplingSettings, seed: int, weights: Published | None
    ) -> dict[str, Any]:
        """What to send to `/v1/completions`."""
        top_k = {"top_k": settings.top_k} if settings.top_k else {}  # not every server knows it
        return _openai_body(asked.text, asked, count, settings, self.model) | {"seed": seed} | top_k

    def load(self, weights: Published) -> None:
        """Let the server draw with these weights; a `Trouble` if it does not, and it is not left paused."""
        raise Trouble("it does not take weights")

    def has(self, weights: Published) -> bool:
        """Whether the server draws with these weights already."""
        return False

    def serving(self) -> str | None:
        """What the server calls the weights it has, None if it does not say."""
        return None

    def is_paused(self) -> bool:
        """Whether it keeps requests waiting until it is resumed."""
        return False

    def drop(self, weights: Published) -> None:
        """These weights are asked for no more."""

    def advice(self) -> str:
        """How to start the server so that it takes weights."""
        return "set weight_sync to none to draw with its own"

    def about(self) -> dict[str, str]:
        """What `partway doctor` shows of it."""
        # vLLM calls the weights it was started with `default`.
        known = {None: "it does not say", "default": "none, it has those it was started with"}
        version = self.serving()
        said = {
            "server": f"{self.name} {self.version}".strip(),
            "model": self.model or "the one a request names",
            "weights_given_last": known.get(version, str(version)),
            "takes": ", ".join(f"{FORMS[form]} ({how})" for form, how in self.forms.items()) or "no weights",
            "says_log_probs": "yes" if self.tells_log_probs else "no",
        }
        if len(self.forms) < len(FORMS):
            said["for_more"] = self.advice()
        if self.is_paused():
            said["paused"] = f"yes, requests wait; to go on: curl -X POST {self.calls.root}/resume"
        return said


def _openai_body(
    prompt: str | Sequence[int], asked: Asked, count: int, settings: SamplingSettings, model: str | None
) -> dict[str, Any]:
    """What every OpenAI-style server understands."""
    body: dict[str, Any] = {
        "prompt": prompt if isinstance(prompt, str) else list(prompt),
        "n": count,
        "max_tokens": settings.max_completion_length,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
    }
    body |= {"stop": list(asked.stops)} if asked.stops else {}
    return body | ({} if model is None else {"model": model})


def _adapter(weights: Published | None) -> str | None:
    return weights.name if weights is not None and weights.form == "lora" else None


class TransformersServe(Server):
    """`transformers serve`; started without a model, the directory of the weights is the model's name.

    It reads text only, answers with one completion whatever `n` says, and keeps every model it was asked for
    in memory until it is reset. All settings of `generate` are stated, as it would take the model's own; they
    take the place of the model's, so that without a tokenizer here it would not know where to end.
    """

    name = "transformers serve"

    @property
    def forms(self) -> Mapping[Form, str]:
        return {"full": "a request names their directory"}

    def body(
        self, asked: Asked, count: int, settings: SamplingSettings, seed: int, weights: Published | None
    ) -> dict[str, Any]:
        if not asked.ends:
            return super().body(asked, count, settings, seed, weights)
        generation: dict[str, Any] = {
            "max_new_tokens": settings.max_completion_length,
            "eos_token_id": list(asked.ends),
            "pad_token_id": asked.ends[0],
            "do_sample": settings.temperature > 0,
        }
        if settings.temperature > 0:
            sampling = ("temperature", "top_p", "top_k")
            generation |= {name: getattr(settings, name) for name in sampling}
        body = {"prompt": asked.text, "seed": seed, "generation_config": json.dumps(generation)}
        body |= {"stop": list(asked.stops)} if asked.stops else {}
        # It has no model of its own: a request without a name would fail.
        model = self.model or asked.model if weights is None else str(weights.directory)
        return body | ({} if model is None else {"model": model})

    def load(self, weights: Published) -> None:
        self.calls.post("/reset")  # or every version would stay in memory
        body = {"prompt": "1", "max_tokens": 1, "model": str(weights.directory)}
        self.calls.post("/v1/completions", body)

    def has(self, weights: Published) -> bool:
        return True  # it loads what it is asked for

    def advice(self) -> str:
        return "it takes no adapters, and whole weights only if it was started without the name of a model"


class Vllm(Server):
    """`vllm serve`: whole weights are reloaded in place in its developer mode, adapters under new names."""

    name = "vLLM"
    in_place = ("full",)
    tells_log_probs = True
    RELOADING = frozenset({"/pause", "/resume", "/collective_rpc", "/reset_prefix_cache", "/weight_info"})
    ADAPTERS = frozenset({"/v1/load_lora_adapter", "/v1/unload_lora_adapter"})

    @property
    def forms(self) -> Mapping[Form, str]:
        full: dict[Form, str] = {"full": "/collective_rpc reload_weights"}
        lora: dict[Form, str] = {"lora": "/v1/load_lora_adapter"}
        has_full, has_lora = self.routes >= self.RELOADING, self.routes >= self.ADAPTERS
        return (full if has_full else {}) | (lora if has_lora else {})

    def body(
        self, asked: Asked, count: int, settings: SamplingSettings, seed: int, weights: Published | None
    ) -> dict[str, Any]:
        """Our own tokens there, and theirs with their log-probs back.

        Without the seed: each sample with one is drawn apart, which is slow, and on a CPU vLLM 0.32 ends with
        an error as soon as such a request has to wait in the middle of its prompt.
        """
        model = _adapter(weights) or self.model
        body = _openai_body(asked.tokens or asked.text, asked, count, settings, model)
        body["top_k"] = settings.top_k
        if asked.tokens:
            body |= {"stop_token_ids": list(asked.ends), "return_token_ids": True, "logprobs": 0}
        return body

    def load(self, weights: Published) -> None:
        if weights.form == "lora":
            if weights.name in self._models():  # loaded before the run was resumed
                self.drop(weights)
            adapter = {"lora_name": weights.name, "lora_path": str(weights.directory)}
            self.calls.tell("/v1/load_lora_adapter", adapter, LOADING)
            return
        self._check_visible(weights)
        with self._paused():
            self._reload({"weights_path": str(weights.directory)})
            self.calls.post("/reset_prefix_cache")  # its keys and values are those of the old weights
            self.calls.post("/update_weight_version", {"new_version": str(weights.directory)})
        if (found := self.serving()) != str(weights.directory):
            raise Trouble(f"it says its weights are {found!r:.100}, expected {weights.directory}")

    def has(self, weights: Published) -> bool:
        if weights.form == "lora":
            return weights.name in self._models()
        return self.serving() == str(weights.directory)

    def serving(self) -> str | None:
        if "/weight_info" not in self.routes:
            return None
        return _text(self.calls.get("/weight_info"), "weight_version")

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

    def _check_visible(self, weights: Published) -> None:
        """Make sure that the server can read the directory.

        A path it cannot read leaves it with half-loaded weights, and every later request fails. Reading a
        file without any weights, as they are and not as a checkpoint, fails or succeeds without changing any.
        """
        from safetensors.torch import save_file  # an evaluation needs no torch

        probe = weights.directory / "visible"
        probe.mkdir(exist_ok=True)
        # Servers load side by side: each makes the whole file before it has the name that all of them read.
        part = probe / f"{uuid4().hex}.part"
        save_file({}, part)
        part.replace(probe / "model.safetensors")
        try:
            self._reload({"weights_path": str(probe), "is_checkpoint_format": False})
        except Trouble as trouble:
            if trouble.status is None:
                raise
            raise Trouble(
                f"it cannot read {weights.directory} ({trouble}); put output_dir where all servers see it "
                "under the same path"
            ) from trouble

    def _reload(self, arguments: dict[str, Any]) -> None:
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
            raise Trouble("/v1/models did not give a list of models") from None


class Sglang(Server):
    """SGLang: weights and adapters are loaded from directories; it drains and pauses by itself."""

    name = "SGLang"
    in_place = ("full",)
    ADAPTERS = frozenset({"/load_lora_adapter", "/unload_lora_adapter"})

    @property
    def forms(self) -> Mapping[Form, str]:
        full: dict[Form, str] = {"full": "/update_weights_from_disk"}
        return full | {"lora": "/load_lora_adapter"} if self.routes >= self.ADAPTERS else full

    def body(
        self, asked: Asked, count: int, settings: SamplingSettings, seed: int, weights: Published | None
    ) -> dict[str, Any]:
        adapter = _adapter(weights)
        model = f"{self.model}:{adapter}" if adapter else self.model
        body = _openai_body(asked.tokens or asked.text, asked, count, settings, model)
        body |= {"seed": seed, "top_k": settings.top_k or -1}  # -1: all
        return body | ({"stop_token_ids": list(asked.ends)} if asked.ends else {})

    def load(self, weights: Published) -> None:
        directory = str(weights.directory)
        if weights.form == "lora":
            adapter = {"lora_name": weights.name, "lora_path": directory}
            self._must_succeed(self.calls.post("/load_lora_adapter", adapter, LOADING))
            return
        body = {"model_path": directory, "weight_version": directory}
        self._must_succeed(self.calls.post("/update_weights_from_disk", body, LOADING))
        if not self.has(weights):
            raise Trouble(f"it says its weights are not those of {directory}")

    def has(self, weights: Published) -> bool:
        if weights.form == "lora":
            return True  # a name it does not know is refused, and asked of another
        return self.serving() == str(weights.directory)

    def serving(self) -> str | None:
        return _text(self.calls.get("/get_model_info"), "model_path")

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


def identify(calls: Calls, model: str | None = None) -> Server:
    """Find out what answers at an address, by the routes it says it has; `model` is the one to ask for."""
    said = _said(calls, "/openapi.json")
    paths = said.get("paths") if isinstance(said, Mapping) else None
    routes = frozenset(map(str, paths)) if isinstance(paths, Mapping) else frozenset()
    if {"/load_model", "/reset"} <= routes:
        return TransformersServe(calls, model, "", routes)
    model = model or _first_model(_said(calls, "/v1/models"))
    if "/update_weights_from_disk" in routes:
        return Sglang(calls, model, _version(calls, "/server_info"), routes)
    if {"/version", "/tokenize"} <= routes:
        return Vllm(calls, model, _version(calls, "/version"), routes)
    return Server(calls, model, "", routes)


def _first_model(said: Any) -> str | None:
    try:
        name = said["data"][0]["id"]
    except (LookupError, TypeError):
        return None
    return name if isinstance(name, str) and len(name) <= LONGEST_NAME else None


def _version(calls: Calls, path: str) -> str:
    return (_text(_said(calls, path), "version") or "")[:40]


def _said(calls: Calls, path: str) -> Any:
    """What a server says at a path, None if it refuses to; a `Trouble` if nobody answers there."""
    try:
        return calls.get(path)
    except Trouble as trouble:
        if trouble.status is None:
            raise
        return None


def _text(said: Any, key: str) -> str | None:
    value = said.get(key) if isinstance(said, Mapping) else None
    return value if isinstance(value, str) else None
