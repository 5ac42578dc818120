import json
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from partway.cli import doctor, trace_tables
from partway.cli.trace_tables import Shown
from partway.language import trace
from partway.sandbox import walls
from stepbox import RISK, BoxError, BoxReport, WeakBox
from stepbox.attacks import ATTACKS
from stepbox.walls import LANDLOCK

WALLS = {"landlock": "active", "seccomp": "active"}


@pytest.fixture
def found(monkeypatch):
    """A checkup whose sandbox report the test decides."""

    def choose(report):
        def inspect():
            if isinstance(report, Exception):
                raise report
            return report

        monkeypatch.setattr("stepbox.inspect", inspect)
        monkeypatch.setattr(walls, "withstood", lambda **options: {"run for ever": True})
        monkeypatch.setattr(doctor, "devices", lambda: iter(["CPU: 1 core"]))

    return choose


def run(*options):
    return CliRunner().invoke(doctor.command, options)


def test_json_says_versions_devices_walls_and_extras():
    result = run("--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 0, result.output
    assert report["packages"]["partway"]
    assert report["packages"]["torch"]
    assert report["devices"][0].startswith("CPU")
    assert report["sandbox"]["protections"]
    assert set(report["sandbox"]["withstood"]) == set(ATTACKS)
    assert all(report["sandbox"]["withstood"].values())
    assert {"peft", "plots", "wandb"} <= {extra["name"] for extra in report["extras"]}
    assert report["problems"] == []


def test_a_full_set_of_walls_is_strong(found):
    found(BoxReport(WALLS, {"read a file": True}))
    result = run()
    assert "strong" in result.stdout
    assert result.exit_code == 0


def test_a_missing_wall_is_named(found):
    found(BoxReport(WALLS | {"landlock": "inactive: old kernel"}, {"read a file": True}))
    assert "good" in run().stdout
    assert "without landlock" in " ".join(run().stdout.split())


def test_a_kernel_with_one_of_its_two_walls_is_weak(found):
    found(BoxReport(WALLS | {LANDLOCK: "inactive: old kernel"}, {"read a file": True}))
    assert json.loads(run("--json").stdout)["sandbox"]["strength"].startswith("weak: a hole in one wall")


def test_what_a_program_could_do_is_named(found):
    found(BoxReport(WALLS, {"read a file": False, "open a socket": True}))
    strength = json.loads(run("--json").stdout)["sandbox"]["strength"]
    assert strength.startswith("weak")
    assert "read a file" in strength
    assert "socket" not in strength


def test_an_attack_that_gets_through_is_named(found, monkeypatch):
    found(BoxReport(WALLS, {"read a file": True}))
    monkeypatch.setattr(walls, "withstood", lambda **options: {"run for ever": True, "lie": False})
    shown = " ".join(run().stdout.split())
    assert "broken: a program managed to lie;" in shown
    assert "attacked to lie GOT THROUGH" in shown
    assert "1 attack withstood" in shown


def test_colours_can_be_read_on_white_and_on_black(found, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    found(BoxReport(WALLS, {"read a file": False}))
    doctor.show(doctor.examine())
    reference, *others = [
        Shown("one", trace(text)) for text in ("n = 2\nm = n\nanswer = m", "n = 2\nm = n / 0")
    ]
    trace_tables.show([reference, *others])
    trace_tables.show_against(reference, others)
    shown = capsys.readouterr().out
    codes = {code for some in re.findall(r"\x1b\[([\d;]*)m", shown) for code in some.split(";")}
    assert {"1", "31"} <= codes, "bold and red"
    assert not codes & {"2", "33", "37", "93", "97"}, "neither dim, nor yellow, nor white"


def test_a_weak_sandbox_comes_with_the_switch_that_accepts_it(found, monkeypatch):
    def refuse(**options):
        raise WeakBox("no program is run on this system")

    found(BoxReport(WALLS | {"seccomp": "inactive: none"}, {"open a socket": False}))
    monkeypatch.setattr(walls, "withstood", refuse)
    strength = json.loads(run("--json").stdout)["sandbox"]["strength"]
    assert f"unless you say --allow-weak-sandbox: {RISK}" in strength


def test_an_unusable_sandbox_is_a_problem_and_an_exit_code(found):
    found(BoxError("no isolated worker can be started; try something"))
    result = run()
    assert result.exit_code == 1
    assert "try something" in " ".join(result.stdout.split())


def test_without_the_folder_of_the_sandbox_the_rest_works(monkeypatch):
    monkeypatch.setattr(doctor.registry, "parts", lambda kind: {})
    monkeypatch.setattr(doctor, "devices", lambda: iter(["CPU: 1 core"]))
    result = run("--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["sandbox"]["strength"].startswith("missing: general programs cannot")


def test_missing_packages_come_with_the_command_that_gets_them(found, monkeypatch):
    found(BoxReport(WALLS, {"read a file": True}))
    versions = {"peft": None, "torch": None}
    monkeypatch.setattr(doctor, "version_of", lambda name: versions.get(name, "1.0"))
    result = run("--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert report["problems"] == ["torch is missing; try: pip install torch"]
    shown = " ".join(run().stdout.split())
    assert "missing; pip install 'partway[peft]'" in shown


def test_every_extra_that_users_take_is_shown_with_its_use():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].keys()
    assert doctor.USES.keys() == extras - {"all", "browser", "dev"}
