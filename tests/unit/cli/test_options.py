"""Options declared as fields of a dataclass reach the command typed, defaulted and in order."""

from dataclasses import dataclass

import click
from click.testing import CliRunner

from partway.cli import app
from partway.cli.options import given, takes
from partway.cli.sample import SampleOptions
from partway.measuring.engine_options import EvaluateOptions


@dataclass(frozen=True)
class Pie:
    name: str = given(click.argument("name"))
    pieces: int = given(click.option("--pieces", default=8, show_default=True, help="How many."))
    hot: bool = given(click.option("--hot", is_flag=True, help="Not cold."))


@click.command()
@takes(Pie)
def bake(**options):
    click.echo(repr(Pie(**options)))


def test_a_field_is_an_option():
    assert CliRunner().invoke(bake, ["apple", "--hot"]).output == "Pie(name='apple', pieces=8, hot=True)\n"
    shown = CliRunner().invoke(bake, ["--help"]).output
    assert shown.index("--pieces") < shown.index("--hot")


def test_every_option_of_the_commands_is_a_field_or_says_how_to_print():
    for name, options, others in (
        ("evaluate", EvaluateOptions, {"compare", "as_json"}),
        ("sample", SampleOptions, {"show", "as_json"}),
    ):
        command = app.get_command(click.Context(app), name)
        fields = options.__dataclass_fields__
        assert {parameter.name for parameter in command.params} == fields.keys() | others
