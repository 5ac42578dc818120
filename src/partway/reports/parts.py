"""What reports add to the method: commands, and how a notebook shows its objects."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "commands": {
        "buffer": Part(
            "partway.reports.buffer_command:command", "What a run has kept; export and import it."
        ),
        "report": Part(
            "partway.reports.commands:report", "One page of tables and figures for one or several runs."
        ),
        "browse": Part(
            "partway.reports.commands:browse",
            "Read what a run sampled in the terminal: pages, filters, states.",
        ),
    },
    "views": {
        "trace": Part("partway.reports.trace_html:trace_html", "Each step with the state it reaches."),
        "buffer": Part("partway.reports.buffer_html:buffer_html", "Kept solutions side by side."),
        "evaluation": Part("partway.reports.number_tables:evaluation_html", "Metrics with intervals."),
    },
}
