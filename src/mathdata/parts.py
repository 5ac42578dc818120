"""What mathdata adds to partway: commands that make files of problems from GSM8K and MathQA."""

from partway.registry import Part, Parts

PARTS: Parts = {
    "commands": {
        "data gsm8k": Part(
            "mathdata.commands:gsm8k", "Make problems of GSM8K, from its annotated solutions."
        ),
        "data mathqa": Part(
            "mathdata.commands:mathqa", "Make problems of MathQA: MathQA-Python or its filtered version."
        ),
    },
    "layouts": {
        "gsm8k": Part("mathdata.gsm8k:reference_texts", "References from GSM8K's markup."),
    },
}
