"""What data adds to the method: files and tables of problems in many layouts, and commands for them."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "commands": {
        "data": Part("partway.data.commands:command", "Make files of problems, or check your own."),
        "data check": Part("partway.data.commands:check", "Check a file of problems."),
    },
    "problems": {
        "files": Part("partway.data.problem_files:check_problems", "Whatever holds rows."),
        "remarks": Part("partway.data.remarks:remarks", "What is odd about problems as a whole."),
    },
}
