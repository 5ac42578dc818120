"""What shortcuts add to the method: samplers that are tried before and after the plain tree."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "samplers": {
        "shared_prompts": Part("partway.shortcuts.shared_prompts:sampler", "Prompts kept once."),
        "own_cache": Part("partway.shortcuts.marching:OWN_CACHE", "Rows in step, for any causal model."),
    }
}
