"""What tracking adds to the method: watchers of a training, and ways to publish its model."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "commands": {
        "export": Part(
            "partway.tracking.commands:export",
            "Write the model of a run for other programs.",
            "Compare and share",
        )
    },
    "callbacks": {
        "display": Part("partway.tracking.display:of_trainer", "A live bar, or plain lines."),
        "tied": Part("partway.tracking.display:TiedWeights", "No warning of weights that are tied."),
        "tables": Part("partway.tracking.sample_tables:of_trainer", "Samples, for trackers."),
        "card": Part("partway.tracking.publishing:CardWriter", "The final model's README.md."),
    },
    "hub": {
        "open": Part("partway.tracking.publishing:reaching_hub", "Says at once that the Hub cannot be used."),
        "upload": Part("partway.tracking.publishing:upload", "Uploads the final model."),
    },
}
