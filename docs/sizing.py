"""What a configuration needs: memory from its keys and the model's sizes, hours from counted tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partway.cli.config_files import read_settings

GB = 2**30


@dataclass(frozen=True)
class Size:
    """The numbers of a model's config.json that memory and time depend on.

    The last three are bytes that a pass holds per token and layer: in 32 bits, under autocast, and there
    with checkpointing, when one layer is held as without. `docs/measure_memory.py` measured them. GPT-Neo's
    are 112 bytes a unit of width and 512 a head in 32 bits, 88 and 768 under autocast, and 16 more, since its
    attention keeps its weights; of the large one, with fewer heads for its width, the first was measured.
    With checkpointing the larger ones have four bytes a unit, as the others.
    """

    parameters: float
    layers: int
    width: int
    vocabulary: int
    long: float
    short: float
    checkpointed: float


@dataclass(frozen=True)
class Tokens:
    """Mean tokens of a problem, counted with SmolLM2's tokenizer over the first 4,000 training problems."""

    question: float
    solution: float


SIZES = {
    "EleutherAI/gpt-neo-125m": Size(125.2e6, 12, 768, 50_257, 92_176, 76_816, 3_072),
    "EleutherAI/gpt-neo-2.7B": Size(2.65e9, 32, 2560, 50_257, 296_976, 240_656, 10_240),
    "HuggingFaceTB/SmolLM2-360M": Size(362e6, 32, 960, 49_152, 87_620, 57_284, 3_840),
    "Qwen/Qwen3-0.6B-Base": Size(596e6, 28, 1024, 151_936, 148_136, 94_632, 4_096),
    "meta-llama/Llama-3.2-1B": Size(1.236e9, 16, 2048, 128_256, 230_024, 143_752, 8_192),
}
DATA = {"gsm": Tokens(61.1, 54.5), "mathqa": Tokens(75.3, 73.2)}
# Solutions a problem has on average over a run, the reference among them: the paper's table of kept solutions
# ends at 2.00 + 1.36, of which a tree learns the shared beginnings once.
KEPT = {"none": 1.0, "fcs": 1.5, "fcs+pcs": 2.2}
PEAK_16, PEAK_32 = 312e12, 156e12  # an A100's matrix products, 16 bits and TF32
REACHED = 0.3  # of that peak, while learning
BANDWIDTH = 1.5e12  # bytes a second of the same card, for decoding
LAUNCH = 50 * 6e-6  # seconds of a layer that decodes few rows: operations as counted, time as assumed


def memory(settings: Mapping[str, Any], size: Size) -> float:
    """Gigabytes on one device that holds everything, without a library's own share."""
    # 32-bit weights, gradients and two moments; Trainer's fp16 and bf16 keep these as they are.
    # An adapter's are next to nothing, and the embedding gets no gradient.
    states = size.parameters * (4 if settings.get("use_peft") else 16)
    embedding = 0 if settings.get("use_peft") else 8 * size.vocabulary * size.width
    is_short = settings.get("fp16") or settings.get("bf16")
    copies = 2 * size.parameters if is_short else 0  # autocast's, of all weights
    tokens = settings["tokens_per_pass"]
    each = size.short if is_short else size.long
    if settings.get("gradient_checkpointing"):
        activations = tokens * (size.layers * size.checkpointed + each)
    else:
        activations = tokens * size.layers * each
    # Half the tokens are targets; their gradients are written over the logits.
    logits = tokens / 2 * size.vocabulary * (2 if is_short else 4)
    return (states + embedding + copies + activations + logits) / GB


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
    """A row for every experiment of a directory of configurations; those that need the same share one."""
    found: dict[str, list[str]] = {}
    for path in sorted(directory.glob("*_*.yaml")):
        settings = read_settings(path)
        if "model_name_or_path" not in settings or "self_sampling" not in settings:
            continue  # a part that others are based on
        size = SIZES[settings["model_name_or_path"]]
        learning, exploring = hours(settings, size)
        needed = f"{memory(settings, size):.0f} | {learning:.1f} | {exploring:.1f}"
        found.setdefault(needed, []).append(path.stem)
    rows = ["| | GB | hours learning | hours exploring |", "| --- | ---: | ---: | ---: |"]
    rows += [f"| `{names[0]}`{_others(names)} | {needed} |" for needed, names in found.items()]
    return "\n".join(rows)


def _others(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""


CHANGES: dict[str, dict[str, Any]] = {
    "as configured": {},
    "`tokens_per_pass: 8192`": {"tokens_per_pass": 8192},
    "the same, `gradient_checkpointing`": {"tokens_per_pass": 8192, "gradient_checkpointing": True},
    "`tokens_per_pass: 2048`": {"tokens_per_pass": 2048},
    "the same, `use_peft`": {"tokens_per_pass": 2048, "use_peft": True},
}


def savings(directory: Path) -> str:
    """Gigabytes of every experiment with keys that save memory."""
    rows = [f"| GB | {' | '.join(CHANGES)} |", "| --- |" + " ---: |" * len(CHANGES)]
    for path in sorted(directory.glob("*_*.yaml")):
        settings = read_settings(path)
        plain = {"gradient_checkpointing": False, "use_peft": False}
        size = SIZES[settings["model_name_or_path"]]
        needed = [memory(settings | (plain | change if change else {}), size) for change in CHANGES.values()]
        rows.append(f"| `{path.stem}` | {' | '.join(f'{one:.0f}' for one in needed)} |")
    return "\n".join(rows)
