"""The race of `python -m benchmarks serve`, with a scripted server among those who run."""

from scripted_server import apple_routes, routed_server
from training_cases import apples, tiny_gpt_neo

from benchmarks.sampling_contenders import Task
from benchmarks.serve import contenders, race, show
from partway.models.engine import SamplingSettings

PROBLEMS = apples(2)


def test_everybody_draws_the_same_samples_and_a_table_says_how_fast(tmp_path, capsys):
    language_model, lines = tiny_gpt_neo(PROBLEMS), []
    with routed_server(apple_routes()) as server:
        with contenders(language_model, [server.url], tmp_path) as racing:
            task = Task(language_model, PROBLEMS, 6, SamplingSettings(max_completion_length=8))
            result = race(task, racing, 1, 0, lines.append)
        asked = [call for call in server.asked("/v1/completions") if call["prompt"] != "1"]
    assert len(asked) == 1 + 2 * 4, "the first warms up; one by one, four of each problem are enough"
    rates = result["tokens_per_second"]
    assert list(rates) == ["tree", "`generate`", "transformers serve"]
    assert min(rates.values()) > 0
    returned = [int(line.split()[-5].replace(",", "")) for line in lines]
    assert returned[0] == returned[1] == 2 * 6 * 8, "fresh weights never end"
    assert 0 < result["distinct"] <= 1
    show({"fresh weights, n = 6": result})
    head, rule, row = capsys.readouterr().out.splitlines()
    assert head == "| tokens a second | distinct | tree | `generate` | transformers serve |"
    assert rule.count("---") == row.count("|") - 1 == 5
