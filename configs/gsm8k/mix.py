"""Mixes a fine-tuned model with the one it began as (WiSE-FT).

    python configs/gsm8k/mix.py FIRST TUNED SHARE OUT

SHARE is the part of the fine-tuned weights; OUT becomes a model directory that `partway evaluate` takes.
"""

import sys

from partway.arms.mixing import mixed
from partway.models.loading import load_model


def main(first: str, tuned: str, share: str, out: str) -> None:
    mix = mixed(load_model(first), load_model(tuned), float(share))
    mix.model.save_pretrained(out)
    mix.codec.tokenizer.save_pretrained(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
