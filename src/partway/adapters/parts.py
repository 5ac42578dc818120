"""What adapters add to the method: models that are adapters, adapters to train, and weights in few bits."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "adapters": {
        "load": Part("partway.adapters.lora:load_adapter", "An adapter from a directory, on its base."),
        "add": Part("partway.adapters.lora:with_adapter", "A model with an adapter to train."),
        "save_base": Part("partway.adapters.lora:save_nameless_base", "What an adapter was put on."),
        "pack": Part("partway.adapters.few_bits:quantization", "Weights in 4 or 8 bits."),
    }
}
