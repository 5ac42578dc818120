"""Text to tokens and back, for tokenizers of every temper."""

import pytest
from sampling_cases import APPLES
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizer, PreTrainedTokenizerFast

from partway.errors import ModelError
from partway.models.text import Codec
from partway.models.tiny import train_tokenizer
from partway.solution import EMPTY, Solution

LOOP = Solution(("n0 = 3", "for i in range(n0):\n    n0 = n0 + i\n    n0 = n0 * 2", "answer = n0"))


def byte_tokenizer(**settings):
    """One token per byte and `<end>`, which is token 0."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({token: i for i, token in enumerate(["<end>", *alphabet])}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, **settings)


def spacing_tokenizer():
    """Puts a space before every text and takes it away again, as Llama 2's tokenizer does."""
    pieces = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "\u2581",
        *"ansewr=0123456789",
    ]
    backend = Tokenizer(
        models.BPE({p: i for i, p in enumerate(pieces)}, [], unk_token="<unk>", byte_fallback=True)
    )
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    steps = [
        decoders.Replace("\u2581", " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
        decoders.Strip(" ", 1, 0),
    ]
    backend.decoder = decoders.Sequence(steps)
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")


class SlowTokenizer(PreTrainedTokenizer):
    """A tokenizer in Python: one token per character."""

    def __init__(self, **settings):
        super().__init__(**settings)

    @property
    def vocab_size(self):
        return 128

    def get_vocab(self):
        return {chr(number): number for number in range(128)} | self.added_tokens_encoder

    def _tokenize(self, text):
        return list(text)

    def _convert_token_to_id(self, token):
        return ord(token)

    def _convert_id_to_token(self, index):
        return chr(index)

    def convert_tokens_to_string(self, tokens):
        return "".join(tokens)


CODECS = {
    "tiny": lambda: Codec.of(train_tokenizer([APPLES])),
    "bytes": lambda: Codec.of(byte_tokenizer(eos_token="<end>")),
    "spacing": lambda: Codec.of(spacing_tokenizer()),
    "slow": lambda: Codec.of(SlowTokenizer(eos_token="<end>")),
}


@pytest.fixture(params=CODECS)
def codec(request):
    return CODECS[request.param]()


def test_prompts_and_solutions_come_back_to_the_letter(codec):
    prompt = codec.prompt("  How many \n\t are left?")
    start = [] if codec.bos_id is None else [codec.bos_id]
    assert codec.decode(prompt[len(start) :]) == "# How many are left?\n"
    for solution in (APPLES.reference, LOOP):
        assert codec.decode(codec.steps(solution)) == f"{solution.text}\n"
        whole = codec.decode((prompt + codec.steps(solution))[len(start) :])
        assert whole == f"# How many are left?\n{solution.text}\n"


def test_the_tokens_of_a_prefix_are_a_prefix_of_the_tokens(codec):
    tokens = codec.target(LOOP, finished=True)
    assert tokens[-1] == codec.eos_id
    assert codec.target(EMPTY, finished=False) == []
    for length in range(len(LOOP) + 1):
        beginning = codec.target(LOOP.prefix(length), finished=False)
        assert tokens[: len(beginning)] == beginning


def test_special_tokens_spelled_in_a_question_are_ordinary_text(codec):
    for special in (codec.eos_id, codec.pad_id):
        spelled = codec.tokenizer.convert_ids_to_tokens(special)
        tokens = codec.encode(f"How many {spelled} are left?")
        assert special not in tokens
        assert codec.decode(tokens) == f"How many {spelled} are left?"


def test_prompts_begin_with_a_start_token_only_if_the_tokenizer_begins_with_one():
    assert CODECS["tiny"]().bos_id is None
    spacing = CODECS["spacing"]()
    assert spacing.prompt("1?")[0] == spacing.bos_id == 1
    assert 1 not in spacing.steps(APPLES.reference)
    assert Codec.of(byte_tokenizer(eos_token="<end>", bos_token="<end>")).bos_id is None


def test_padding_falls_back_to_end_of_text_and_end_of_text_to_the_models():
    assert Codec.of(byte_tokenizer(eos_token="<end>")).pad_id == 0
    assert Codec.of(byte_tokenizer(), eos_id=5).eos_id == 5


def test_a_tokenizer_without_end_of_text_is_refused():
    with pytest.raises(ModelError, match="no end-of-text token"):
        Codec.of(byte_tokenizer())


@pytest.mark.parametrize(
    "normalizer",
    [
        normalizers.Lowercase(),
        normalizers.Replace("\n", " "),
        normalizers.Replace("  ", " "),
        normalizers.Strip(),
    ],
)
def test_a_tokenizer_that_loses_letters_is_refused(normalizer):
    tokenizer = byte_tokenizer(eos_token="<end>")
    tokenizer.backend_tokenizer.normalizer = normalizer
    with pytest.raises(ModelError, match="does not give a solution back to the letter"):
        Codec.of(tokenizer)


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused():
    with pytest.raises(ModelError, match="but the model knows 100 tokens"):
        Codec.of(byte_tokenizer(eos_token="<end>"), vocabulary_size=100)


def test_steps_are_remembered_but_not_without_end(monkeypatch):
    monkeypatch.setattr("partway.models.text.MAX_REMEMBERED", 2)
    codec = Codec.of(train_tokenizer([APPLES]))
    assert codec.steps(LOOP) == codec.steps(LOOP)
    assert len(codec._remembered) <= 2
