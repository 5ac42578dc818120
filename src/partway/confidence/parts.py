"""What this folder adds to the method: objectives."""

from partway.registry import Part, Parts

_LOSSES = "partway.confidence.losses"
PARTS: Parts = {
    "objectives": {
        "label_smoothing": Part(f"{_LOSSES}:LabelSmoothing", "MLE-Aug, with a share for all other tokens."),
        "entropy_bonus": Part(f"{_LOSSES}:EntropyBonus", "MLE-Aug, and a reward for undecided tokens."),
        "gem": Part(f"{_LOSSES}:GEM", "MLE-Aug against the model's own sharpened distribution."),
        "dco": Part(
            f"{_LOSSES}:DCO", "pass@N of the kept solutions, as sampling with N tries would have it."
        ),
    }
}
