"""What the demo adds to the method: commands, and problems for those who bring none."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "commands": {
        "demo": Part(
            "partway.demo.commands:command",
            "Few solutions, many answers on built-in problems; a table and a page in minutes.",
        ),
        "data storyproblems": Part(
            "partway.demo.commands:storyproblems", "Word problems from a built-in generator."
        ),
    },
    "problems": {
        "stories": Part("partway.demo.stories:built_in_problems", "Easy word problems, by split and seed."),
    },
}
