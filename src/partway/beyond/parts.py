"""What is beyond the paper: a rule for buffers, a command, choices of a batch, and what pages say."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "rules": {"spurious": Part("partway.beyond.luck:rule", "Solutions that are right by luck.")},
    "metrics": {"luck": Part("partway.beyond.luck:audited", "Which right samples are right by luck.")},
    "commands": {
        "buffer audit": Part("partway.beyond.audit:command", "Find solutions that are right by luck.")
    },
    "choices": {
        "solved_share": Part("partway.beyond.choosing:MixedOrder", "Batches with solved problems."),
        "sample_budget": Part("partway.beyond.choosing:divided", "More samples where none was right yet."),
    },
    "views": {"doubts": Part("partway.beyond.luck:doubts_of", "Why kept solutions seem right by luck.")},
}
