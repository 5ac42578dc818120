"""What a configuration needs: memory from its keys and the model's sizes, hours from counted tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partway.config_files import read_settings

GB = 2**30


@dataclass(frozen=True)
class Size:
    """The numbers of a model's config.json that memory and time depend on."""

    parameters: float
    layers: int
    width: int
    vocabulary: int


@dataclass(frozen=True)
class Tokens:
    """Mean tokens of a problem, counted with SmolLM2's tokenizer over the first 4,000 training problems."""

    question: float
    solution: float


SIZES = {
    "EleutherAI/gpt-neo-125m": Size(125.2e6, 12, 768, 50_257),
    "EleutherAI/gpt-neo-2.7B": Size(2.65e9, 32, 2560, 50_257),
    "HuggingFaceTB/SmolLM2-360M": Size(362e6, 32, 960, 49_152),
    "Qwen/Qwen3-0.6B-Base": Size(596e6, 28, 1024, 151_936),
    "meta-llama/Llama-3.2-1B": Size(1.236e9, 16, 2048, 128_256),
}
DATA = {"gsm": Tokens(61.1, 54.5), "mathqa": Tokens(75.3, 73.2)}
# Solutions a problem has on average over a run, the reference among them: the paper's table of kept solutions
# ends at 2.00 + 1.36, of which a tree learns the shared beginnings once.
KEPT = {"none": 1.0, "fcs": 1.5, "fcs+pcs": 2.2}
PEAK_16, PEAK_32 = 312e12, 156e12  # an A100's matrix products, 16 bits and TF32
REACHED = 0.3  # of that peak, while learning
BANDWIDTH = 1.5e12  # bytes a second of the same card, for decoding
LAUNCH = 25e-6 * 12  # seconds of a layer's kernels when a step decodes few rows


def memory(settings: Mapping[str, Any], size: Size) -> float:
    """Gigabytes on one device that holds everything, without a library's own share."""
    # 32-bit weights, gradients and two moments; Trainer's fp16 and bf16 keep these as they are.
    states = size.parameters * 16
    width = 2 if settings.get("fp16") or settings.get("bf16") else 4
    tokens = settings["tokens_per_pass"]
    # About 17 values of `width` per token, layer and unit (Korthikanti et al., 2022, section 4.1), or the
    # layers' inputs alone, and one layer, when the rest is computed again.
    held = 17 * size.layers if not settings.get("gradient_checkpointing") else size.layers + 17
    activations = tokens * size.width * held * width
    # Half the tokens are targets; their gradients are written over the 32-bit logits, which may be copies.
    logits = tokens / 2 * size.vocabulary * (4 if width == 4 else 4 + width)
    return (states + activations + logits) / GB


def hours(settings: Mapping[str, Any], size: Size) -> tuple[float, float]:
    """Hours of learning and of exploring on one such card."""
    data = next(tokens for name, tokens in DATA.items() if name in settings["train_file"])
    batch, steps = settings["effective_batch_size"], settings["max_steps"]
    kept = KEPT[settings["self_sampling"]]
    learned = batch * (data.question + kept * data.solution)
    recomputed = 4 / 3 if settings.get("gradient_checkpointing") else 1
    in_16_bits = settings.get("fp16") or settings.get("bf16")
    peak = PEAK_16 if in_16_bits else PEAK_32
    learning = 6 * size.parameters * learned * recomputed / (peak * REACHED)
    per_token = size.parameters * (2 if in_16_bits else 4) / BANDWIDTH + size.layers * LAUNCH
    longest = 2 * data.solution  # a batch decodes until its longest sample ends
    exploring = 0.0 if settings["self_sampling"] == "none" else longest * per_token
    return steps * learning / 3600, steps * exploring / 3600


def table(directory: Path) -> str:
    """A row for every experiment of a directory of configurations."""
    rows = ["| | GB | hours learning | hours exploring |", "| --- | ---: | ---: | ---: |"]
    for path in sorted(directory.glob("*_*.yaml")):
        settings = read_settings(path)
        if "model_name_or_path" not in settings or "self_sampling" not in settings:
            continue  # a part that others are based on
        size = SIZES[settings["model_name_or_path"]]
        learning, exploring = hours(settings, size)
        rows.append(f"| `{path.stem}` | {memory(settings, size):.0f} | {learning:.1f} | {exploring:.1f} |")
    return "\n".join(rows)
