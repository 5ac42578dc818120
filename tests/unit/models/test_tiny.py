"""The built-in tiny model and its tokenizer."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sampling_cases import APPLES
from transformers import AutoModelForCausalLM, AutoTokenizer

from partway.errors import ConfigError
from partway.models.loading import load_model
from partway.models.text import Codec
from partway.models.tiny import build_tiny_model, sizes_of, train_tokenizer
from partway.problem import Problem

TOKENIZER = train_tokenizer([APPLES])
CODEC = Codec.of(TOKENIZER)


def pieces(text):
    return [CODEC.decode([token]) for token in CODEC.encode(text)]


def test_words_digits_names_operators_and_newlines_are_one_token_each():
    assert pieces("# Anna has 12 apples.\n") == ["#", " Anna", " has", " 1", "2", " apples", ".", "\n"]
    assert pieces("t19 = n0 ** n7 // (n10 - 4.5)\n") == [
        *("t19", " =", " n0", " **", " n7", " //", " (", "n10", " -", " 4", ".", "5", ")", "\n")
    ]
    assert pieces("answer = answer\n") == ["answer", " =", " answer", "\n"]


def test_what_the_problems_do_not_hold_is_spelled_in_bytes():
    assert pieces(" zoo n123") == [" ", "z", "o", "o", " ", "n", "1", "2", "3"]
    assert len(CODEC.encode("\N{SNOWMAN}")) == 3


@pytest.mark.volume
@given(st.text())
def test_every_text_comes_back(text):
    assert CODEC.decode(CODEC.encode(text)) == text


def test_the_vocabulary_is_bounded_and_keeps_the_most_frequent_words():
    fixed = len(train_tokenizer([]))
    words = [f"{first}{second}{third}" for first in "abcdefghij" for second in "klmnop" for third in "qrstu"]
    problems = [Problem("p", " ".join(["often"] * 9 + words), 1)]
    tokenizer = train_tokenizer(problems, fixed + 20)
    assert len(tokenizer) == fixed + 20
    assert len(tokenizer.encode(" often")) == 1


def test_it_has_about_a_million_parameters_tied_embeddings_and_end_and_pad_tokens():
    language_model = build_tiny_model([APPLES])
    assert 0.5e6 < language_model.model.num_parameters() < 3e6
    assert language_model.model.lm_head.weight is language_model.model.get_input_embeddings().weight
    assert language_model.codec.eos_id != language_model.codec.pad_id
    assert language_model.model.config.eos_token_id == language_model.codec.eos_id
    assert language_model.context_length == 512


def test_the_seed_decides_the_weights_and_nothing_else():
    before = torch.random.get_rng_state()
    first, same, other = (
        build_tiny_model([APPLES], seed=seed, hidden_size=32, layers=1).model.lm_head.weight
        for seed in (0, 0, 1)
    )
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_sizes_have_the_names_of_a_hugging_face_config():
    assert sizes_of("hidden_size=192, num_hidden_layers=6") == {"hidden_size": 192, "layers": 6}
    assert sizes_of("max_position_embeddings=9") == {"context_length": 9}


@pytest.mark.parametrize(
    "text", ["", "hidden_size", "hidden_size=", "depth=3", "vocab_size=0", "vocab_size=-1"]
)
def test_sizes_that_cannot_be_read_are_refused_with_the_names_there_are(text):
    with pytest.raises(ConfigError, match=r"expected name=number .* num_hidden_layers"):
        sizes_of(text)


def test_a_width_that_its_heads_cannot_share_is_refused():
    with pytest.raises(ConfigError, match="multiple of twice the heads"):
        sizes_of("hidden_size=100,num_attention_heads=8")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    directory = tmp_path_factory.mktemp("models") / "tiny"
    return build_tiny_model([APPLES], hidden_size=32, layers=1, directory=directory), directory


def test_saved_it_is_an_ordinary_hugging_face_directory(saved):
    made, directory = saved
    model, tokenizer = (
        AutoModelForCausalLM.from_pretrained(directory),
        AutoTokenizer.from_pretrained(directory),
    )
    assert torch.equal(model.lm_head.weight, made.model.lm_head.weight)
    tokens = made.codec.encode("# Anna has 12 apples.\nn0 = 12\n")
    assert tokenizer.encode("# Anna has 12 apples.\nn0 = 12\n") == tokens
    assert tokenizer.decode(tokens) == "# Anna has 12 apples.\nn0 = 12\n"
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id) == (made.codec.eos_id, made.codec.pad_id)


def test_loaded_by_name_it_is_the_same_model(saved):
    made, directory = saved
    loaded = load_model(directory)
    prompt = torch.tensor([made.codec.prompt(APPLES.question)])
    assert prompt.tolist() == [loaded.codec.prompt(APPLES.question)]
    with torch.no_grad():
        assert torch.equal(loaded.model(prompt).logits, made.model(prompt).logits)
    assert loaded.context_length == made.context_length
    assert not loaded.model.training
