"""What this folder adds to the method: a model by name, and models in GGUF files."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "models": {"smollm2": Part("partway.smollm2.unpacking:directory", "135 million parameters.")},
    "model files": {".gguf": Part("partway.smollm2.unpacking:unpacked", "What llama.cpp and Ollama read.")},
}
