"""What arms add to the method: a command that compares ways of learning, and policy gradients to compare."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "commands": {
        "compare": Part(
            "partway.arms.compare:command",
            "Compare ways of learning that get the same budget.",
            "Compare and share",
        )
    },
    "objectives": {
        name.lower(): Part(f"partway.arms.policy_gradients:{name}", f"A policy gradient ({source}).")
        for name, source in (
            ("GRPO", "Shao et al. 2024"),
            ("RLOO", "Ahmadian et al. 2024"),
            ("MaxRL", "Tajwar et al. 2026"),
            ("PKPO", "Walder and Karkhanis 2025"),
        )
    }
    | {
        "grpo_steps": Part("partway.arms.step_credit:KnownSteps", "Credit for each step that is known."),
        "grpo_tree": Part("partway.arms.step_credit:GroupTree", "Credit for what each step changes."),
    },
}
