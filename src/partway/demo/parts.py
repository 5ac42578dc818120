"""What the demo adds to the method: commands, and problems for those who bring none."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "commands": {
        "demo": Part(
            "partway.demo.commands:command",
            "Train a tiny model on built-in problems and show what it learns, in minutes.",
        ),
        "data storyproblems": Part(
            "partway.demo.commands:storyproblems", "Make word problems with a built-in generator."
        ),
    },
    "problems": {
        "stories": Part("partway.demo.stories:built_in_problems", "Easy word problems, by split and seed."),
    },
}
