"""JSON and YAML from outside: bombs, repeated keys, half characters and files of another kind."""

import time

import pytest

from partway.documents import LARGEST_YAML, Unreadable, parse_json, parse_yaml, read_object


def laughs(levels):
    """A few lines of aliases that stand for 10 ** levels values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (laughs(30), "its aliases stand for more than 100,000 values"),
        ("a: &a [1, *a]", "an alias that stands for itself"),
        ("[" * 50_000, "nested too deeply"),
        ("- " * 5_000 + "x", "nested too deeply"),
        ("seed: 1\nother: 2\nseed: 3\n", "line 3 gives 'seed' again"),
        ("a:\n  b: 1\n  b: 1\n", "line 3 gives 'b' again"),
        ('a: "\\ud800"', "characters that no text has"),
        ('a: "\\0"', "characters that no text has"),
        ("a: \x01", "not YAML"),
        ("seed: " + "9" * 5_000, "not YAML"),
        ("? [1, 2]\n: 3\n", "not YAML"),
        ("when: 2024-99-99", "not YAML"),
        ("a: " + ":1" * 60_000, "a value of more than 100,000 characters"),
        ("a: !!python/object/apply:os.system [ls]", "not YAML"),
    ],
    ids=range(14),
)
def test_yaml_that_would_do_harm_is_refused_at_once(text, reason):
    began = time.process_time()
    with pytest.raises(Unreadable, match=reason):
        parse_yaml(text)
    assert time.process_time() - began < 5


def test_honest_aliases_are_read():
    text = "defaults: &d {seed: 1}\nrun:\n  <<: *d\n  steps: 2\nother:\n  <<: *d\n"
    assert parse_yaml(text)["run"] == {"seed": 1, "steps": 2}


@pytest.mark.parametrize(
    ("text", "reason"), [("[" * 100_000, "nested too deeply"), ("9" * 5_000, "not JSON"), ("{", "not JSON")]
)
def test_json_that_cannot_be_read_is_refused(text, reason):
    with pytest.raises(Unreadable, match=reason):
        parse_json(text)


@pytest.mark.parametrize(
    ("content", "parse", "reason"),
    [
        (b"[1, 2]", parse_json, "found a list"),
        (b"5", parse_json, "found a int"),
        (b"null", parse_json, "found a NoneType"),
        (b"", parse_json, "not JSON"),
        (b"\xff{}", parse_json, "not UTF-8"),
        (b"- a", parse_yaml, "found a list"),
        (b"a: " + b"x" * LARGEST_YAML, parse_yaml, "more than 262,144 bytes"),
    ],
    ids=range(7),
)
def test_a_file_that_holds_no_object_is_refused(tmp_path, content, parse, reason):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(Unreadable, match=reason):
        read_object(tmp_path / "file", parse)


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(Unreadable, match="cannot be read"):
            read_object(path, parse_json)
