"""What it saves to learn once what all prompts of a step begin with: a schema, a chat template.

    python benchmarks/shared_beginning.py data/geoquery/train.jsonl --language sql
    python benchmarks/shared_beginning.py data/gsm8k/train.jsonl

One step of MLE over 16 problems with SmolLM2-135M, forward and backward, one thread, processor time: each
prompt whole, then what they begin with once. The losses are equal but for rounding.
"""

import argparse
import time

import torch

from partway.language.named import language_of
from partway.learning import layouts
from partway.learning.scoring import Scorer
from partway.learning.token_tree import Targets
from partway.models.loading import LanguageModel, load_model
from partway.models.prompts import Asking
from partway.objectives import objective
from partway.problems import load_problems

NEVER = 10**9  # tokens: no prompts have so many in common


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("problems")
    parser.add_argument("--language", default="python")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--batch", type=int, default=16)
    given = parser.parse_args()
    torch.set_num_threads(1)
    language = language_of({"language": given.language})
    model = load_model(given.model, asking=Asking(language=language))
    codec = model.codec
    learned = [
        Targets.of(codec.prompt(language.question(one)), [[*codec.steps(one.reference), *codec.closing]])
        for one in load_problems(given.problems, language=language)
        if one.reference is not None
    ]
    batch = learned[: given.batch]
    worth = layouts.WORTH_SHARING
    each, once = (timed(model, batch, least) for least in (NEVER, worth))
    print(f"ratio {each / once:.2f}")


def timed(model: LanguageModel, batch: list[Targets], worth_sharing: int) -> float:
    """Seconds of the processor that a step takes; the better of two."""
    layouts.WORTH_SHARING = worth_sharing
    scorer = Scorer(model.model, 0)
    plan = scorer.plan(batch)
    taken = []
    for _ in range(2):
        start, loss = time.process_time(), 0.0
        for one in scorer.losses(model.model, plan, objective("mle")):
            one.loss.backward()  # type: ignore[no-untyped-call]
            loss += one.loss.item()
        taken.append(time.process_time() - start)
        model.model.zero_grad()
    print(f"{plan.tokens_computed:,} tokens, {min(taken):.2f} s, loss {loss:.5f}")
    return min(taken)


if __name__ == "__main__":
    main()
