"""What shortcuts add to the method: samplers, smaller passes, and checks that are made once."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "samplers": {
        "shared_prompts": Part("partway.shortcuts.shared_prompts:sampler", "Prompts kept once."),
        "guesses": Part("partway.shortcuts.guessing:sampler", "Tokens that probably follow, read ahead."),
        "own_cache": Part("partway.shortcuts.marching:OWN_CACHE", "Rows in step, for any causal model."),
    },
    "learning": {
        "smaller_passes": Part("partway.shortcuts.smaller_passes:learn", "What fits into a GPU's memory."),
    },
    "checks": {
        "known": Part("partway.shortcuts.found_out:flaw_found", "Checks of large models, once."),
        "rounding": Part("partway.shortcuts.rounding:rounding", "What shorter floats do to log-probs."),
    },
}
