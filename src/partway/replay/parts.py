"""What replay adds to the method: the samples of a run as an explorer, and a run's first steps."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "explorers": {"recorded": Part("partway.replay.recorded:replayed", "The samples of a run.")},
    "replays": {
        "branch": Part("partway.replay.branching:branch", "Another run's first steps."),
    },
}
