"""Files that appear whole or not at all; JSON and YAML that is read or refused with a reason."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from partway.files import (
    LARGEST_YAML,
    Unreadable,
    atomic_directory,
    atomic_writer,
    parse_json,
    parse_yaml,
    read_object,
)


def test_a_file_appears_whole_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "file.txt"
    with atomic_writer(path) as stream:
        stream.write("ä\u2028\n")
        stream.flush()
        assert not path.exists()
    assert path.read_bytes() == "ä\u2028\n".encode()
    assert os.listdir(path.parent) == ["file.txt"]


def test_an_error_in_the_block_leaves_the_old_file_and_no_temporary(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail_half_way() -> None:
        with atomic_writer(path) as stream:
            stream.write("new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_a_symlink_keeps_pointing_at_the_file_written_through_it(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    with atomic_writer(tmp_path / "link.txt") as stream:
        stream.write("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_device_is_written_to_and_not_replaced() -> None:
    with atomic_writer("/dev/null") as stream:
        stream.write("gone")
    assert not Path("/dev/null").is_file()


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    script = (
        "import os, signal, sys; from partway.files import atomic_writer\n"
        "with atomic_writer(sys.argv[1]) as stream:\n"
        "    stream.write('new'); stream.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(path)], timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_a_directory_appears_whole_and_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    for content in ("first", "second"):
        with atomic_directory(path) as directory:
            (directory / "sub").mkdir()
            (directory / "sub" / content).write_text(content)
        assert os.listdir(path / "sub") == [content]
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_an_error_leaves_the_old_directory(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.mkdir()
    (path / "old").touch()

    def fail_half_way() -> None:
        with atomic_directory(path) as directory:
            (directory / "new").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert os.listdir(path) == ["old"]
    assert os.listdir(tmp_path) == ["checkpoint"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("seed: 1\nother: 2\nseed: 3\n", "line 3 gives 'seed' again"),
        ("a:\n- b: 1\n  b: 1\n", "line 3 gives 'b' again"),
        ("a: &a [1, *a]", "not YAML"),
        ("a: \x01", "not YAML"),
        ("a: b: c", "not YAML"),
        ("? [1, 2]\n: 3\n", "not YAML"),
        ("when: 2024-99-99", "not YAML"),
        ("a: !!python/object/apply:os.system [ls]", "not YAML"),
    ],
)
def test_broken_yaml_is_one_line(text: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason) as caught:
        parse_yaml(text)
    assert "\n" not in str(caught.value)


def test_aliases_and_merges_are_read() -> None:
    text = "defaults: &d {seed: 1}\nrun:\n  <<: *d\n  steps: 2\nother:\n  <<: *d\n"
    assert parse_yaml(text)["run"] == {"seed": 1, "steps": 2}


@pytest.mark.parametrize(
    ("content", "parse", "reason"),
    [
        (b"[1, 2]", parse_json, "found a list"),
        (b"", parse_json, "not JSON"),
        (b"{", parse_json, "not JSON"),
        (b"\xff{}", parse_json, "not UTF-8"),
        (b"- a", parse_yaml, "found a list"),
        (b"a: " + b"x" * LARGEST_YAML, parse_yaml, "more than 262,144 bytes"),
    ],
    ids=range(6),
)
def test_a_file_that_holds_no_object_is_refused(tmp_path: Path, content, parse, reason: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(Unreadable, match=reason):
        read_object(tmp_path / "file", parse)


def test_a_missing_file_and_a_directory_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(Unreadable, match="cannot be read"):
            read_object(path, parse_json)


def test_a_full_disk_is_told_with_the_file_that_could_not_be_written(tmp_path):
    with pytest.raises(OSError, match="No space left") as failed, atomic_writer(tmp_path / "page.html"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert failed.value.filename == str(tmp_path / "page.html")
