"""The model card of a finished run."""

from __future__ import annotations

import yaml

from partway.runs import Run
from partway.training.config import SelfSamplingConfig

ABOUT = {
    "none": "references only",
    "fcs": "references and self-sampled fully-correct solutions",
    "fcs+pcs": "references, self-sampled fully-correct and partially-correct solutions",
}


def model_card(config: SelfSamplingConfig, run: Run, step: int, *, is_chat: bool = False) -> str:
    """A README.md that says what the model of a `step` is, how it was trained and how well it did."""
    head = {"library_name": "transformers", "pipeline_tag": "text-generation", "tags": ["partway"]}
    if config.model_name_or_path != "tiny":  # which is made anew for each run: there is no base to name
        head["base_model"] = config.model_name_or_path
    lines = [
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---",
        "# A model that solves problems by writing programs",
        f"Fine-tuned from `{config.model_name_or_path}` with partway on {ABOUT[config.self_sampling]}, "
        f"with the objective `{config.objective}`. These are the weights of step {step}.",
        f"It reads {'a question in its chat format' if is_chat else '`# question` and a newline'}, and "
        f"writes a program, one step per line, that ends when it {config.language.ending}.",
    ]
    if (evaluation := run.evaluations().get(step)) is not None:  # of other weights it would not be true
        lines += ["## Evaluation", _table(evaluation)]
    settings = yaml.safe_dump(config.settings, sort_keys=False)
    lines += ["## Settings", f"```yaml\n{settings}```"]
    return "\n\n".join(lines) + "\n"


def _table(summary: dict[str, object]) -> str:
    metrics = summary["metrics"]
    assert isinstance(metrics, dict)
    rows = [
        f"| {name} | {m['value']:.1%} | {m['low']:.1%} to {m['high']:.1%} |" for name, m in metrics.items()
    ]
    title = f"{summary['problems']} problems, at step {summary['step']}:"
    return "\n".join([title, "", "| metric | value | 95% interval |", "| --- | --- | --- |", *rows])
