"""What replay adds to the method: the samples of a run as an explorer, and a run's first steps."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "explorers": {"recorded": Part("partway.replay.recorded:Recorded", "The samples of a run.")},
    "replays": {
        "results": Part("partway.replay.recorded:recorded_results", "Evaluations that a run has recorded."),
        "branch": Part("partway.replay.branching:branch", "Another run's first steps."),
    },
}
