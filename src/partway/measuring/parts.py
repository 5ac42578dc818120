"""What measuring adds to the method: the command that evaluates a model."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "commands": {
        "evaluate": Part(
            "partway.measuring.commands:command",
            "pass@k and friends of a model or a run on a file of problems.",
        )
    }
}
