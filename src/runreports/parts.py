"""What reports add to the method: commands, and how a notebook shows its objects."""

from partway.registry import Part, Parts

SECTION, BUFFER = "Look at a run", "runreports.buffer_command"

PARTS: Parts = {
    "commands": {
        "report": Part(
            "runreports.commands:report", "Write one page of tables and figures about runs.", SECTION
        ),
        "browse": Part("runreports.commands:browse", "Read a run's samples in the terminal.", SECTION),
        "buffer": Part(f"{BUFFER}:command", "Count, export or judge again what a run has kept.", SECTION),
        "buffer show": Part(f"{BUFFER}:show", "Count what a run has kept."),
        "buffer export": Part(f"{BUFFER}:export", "Write the kept solutions as a data set."),
        "buffer preferences": Part(f"{BUFFER}:preferences", "Write right and wrong continuations."),
        "buffer rejudge": Part(f"{BUFFER}:rejudge", "Judge the recorded samples by other rules."),
        "buffer slowest": Part(f"{BUFFER}:slowest", "Find the problems whose programs take most time."),
        "buffer import": Part(f"{BUFFER}:import_", "Begin a new run with the solutions of another."),
    },
    "views": {
        "trace": Part("runreports.trace_html:trace_html", "Each step with the state it reaches."),
        "buffer": Part("runreports.buffer_html:buffer_html", "Kept solutions side by side."),
        "evaluation": Part("runreports.number_tables:evaluation_html", "Metrics with intervals."),
    },
}
