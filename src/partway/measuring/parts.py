"""What measuring adds to the method: the command that evaluates a model, and your own metrics."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "commands": {
        "evaluate": Part(
            "partway.measuring.commands:command",
            "Measure how many problems a model solves.",
        )
    },
    "metrics": {
        "own": Part("partway.measuring.own_metrics:with_own", "What your own functions say."),
        "functions": Part("partway.measuring.own_metrics:functions", "These functions, by name."),
    },
}
