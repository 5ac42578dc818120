"""What shortcuts add to the method: samplers before and after the plain tree, and checks made once."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "samplers": {
        "shared_prompts": Part("partway.shortcuts.shared_prompts:sampler", "Prompts kept once."),
        "own_cache": Part("partway.shortcuts.marching:OWN_CACHE", "Rows in step, for any causal model."),
    },
    "checks": {"known": Part("partway.shortcuts.found_out:flaw_found", "Checks of large models, once.")},
}
