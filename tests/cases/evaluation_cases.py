"""An engine that draws from given texts by the seed and the problem, and problems for it."""

import random
from collections import Counter

from partway.problem import Problem

RIGHT, WRONG, CRASH, SILENT = "answer = 6\n", "answer = 7\n", "answer = n0\n", "n0 = 6\n"


class DiceEngine:
    """Draws from the given texts; what a problem gets depends on the seed and the problem only."""

    def __init__(self, texts=(RIGHT, WRONG, CRASH, SILENT), fails_after=None):
        self.texts = texts
        self.calls = []
        self.fails_after = fails_after

    def complete(self, requests, settings, seed):
        if self.fails_after is not None and len(self.calls) >= self.fails_after:
            raise KeyboardInterrupt
        self.calls.append((len(requests), settings.temperature))
        return [self.draws(request, settings, seed) for request in requests]

    def draws(self, request, settings, seed):
        rng = random.Random(f"{seed} {request.problem.id}")
        texts = Counter(rng.choices(self.texts, k=request.count))
        return [request.sample(text, count) for text, count in texts.items()]


def problems(count=5):
    return [Problem(f"p{number}", f"question {number}", 6) for number in range(count)]
