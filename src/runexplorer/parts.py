"""What the explorer adds: a command, and a copy of its page beside every report."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "commands": {
        "explore": Part(
            "runexplorer.commands:explore",
            "Open a local page of problems, solutions and their states.",
            "Look at a run",
        )
    },
    "views": {"problems": Part("runexplorer.export:beside_report", "Every problem of a run.")},
}
