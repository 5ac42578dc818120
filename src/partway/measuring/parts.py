"""What measuring adds to the method: the command that evaluates a model, and metrics of one's own."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "commands": {
        "evaluate": Part(
            "partway.measuring.commands:command",
            "Measure how many problems a model solves.",
        )
    },
    "metrics": {
        "own": Part("partway.measuring.own_metrics:with_own", "What functions of one's own say."),
        "functions": Part("partway.measuring.own_metrics:functions", "These functions, by name."),
    },
}
