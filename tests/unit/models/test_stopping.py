"""When a sampled solution is finished."""

import pytest
from sampling_cases import APPLES
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from partway.language import PYTHON, PythonLanguage
from partway.models.text import AnswerWatch, Codec
from partway.models.tiny import train_tokenizer


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("answer = 1\n", True),
        ("n0 = 1\nanswer = n0\n", True),
        ("answer=1\n", True),
        ("answer = 1\nn0 = 2", True),
        ("answer += 1\n", True),
        ("answer //= 2\n", True),
        ("answer = max(1, 2)\n", True),
        ("answer = 1", False),
        ("answer == 1\n", False),
        ("answers = 1\n", False),
        ("n0 = answer\n", False),
        ("    answer = 1\n", False),
        ("if n0:\n    answer = 1\n", False),
        ("answer = max(\n", False),
        ("answer = 1 + \\\n", False),
        ("n0 = dict(\nanswer = 1\n", False),
        ("n0 = dict(\nanswer = 1\n)\nanswer = 2\n", True),
        ('n0 = """\nanswer = 1\n', False),
        ("# (\nanswer = 1\n", False),
        ("", False),
    ],
)
def test_the_closed_assignment_of_the_answer_ends_a_solution(text, closed):
    end = PYTHON.end(text)
    assert (end is not None) is closed
    assert end is None or text[:end].rstrip().splitlines()[-1].startswith("answer")


def test_the_answer_variable_can_be_another():
    language = PythonLanguage("result")
    assert language.end("result = 1\n") == len("result = 1\n")
    assert language.end("answer = 1\n") is None


def watched(codec, size, text):
    """The depth at which watching a row token by token ends it, and how many tokens it has."""
    watch = AnswerWatch(codec, size, PYTHON)
    tokens = codec.encode(text)
    for depth, token in enumerate(tokens):
        if watch.has_newline[token] and watch.closes(tokens[: depth + 1]):
            return depth + 1, len(tokens)
    return None, len(tokens)


def test_a_row_is_ended_by_the_newline_behind_its_answer():
    tokenizer = train_tokenizer([APPLES])
    codec = Codec.of(tokenizer)
    ended, length = watched(codec, len(tokenizer), "n0 = 12\nn1 = 3\nanswer = n0 + n1\n")
    assert ended == length
    assert watched(codec, len(tokenizer), "n0 = 12\nif n0:\n    answer = 3\n")[0] is None


def test_newlines_inside_tokens_are_seen():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merged = ["\u010a\u010a", "1\u010aa"]  # two newlines; a newline between other characters
    vocabulary = {token: number for number, token in enumerate(["<end>", *alphabet, *merged])}
    merges = [("\u010a", "\u010a"), ("1", "\u010a"), ("1\u010a", "a")]
    vocabulary["1\u010a"] = len(vocabulary)
    backend = Tokenizer(models.BPE(vocabulary, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    codec = Codec.of(PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>"))
    text = "n0 = 1\nanswer = n0\n\nn1 = 2\n"
    assert vocabulary["1\u010aa"] in codec.encode(text)
    ended, _ = watched(codec, len(vocabulary), text)
    assert codec.decode(codec.encode(text)[:ended]) == "n0 = 1\nanswer = n0\n\n"
