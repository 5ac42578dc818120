"""Drawing through servers: scripted ones of every kind, with and without weights, that fail in every way."""

import json
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event, Timer

import pytest
import torch
from chat_templates import chat_model
from click.testing import CliRunner
from safetensors.torch import load_file
from scripted_server import completions, routed_server, scripted_server, too_much
from training_cases import apples, tiny_gpt_neo

from modelservers import pool
from modelservers.calls import Trouble
from modelservers.http_engine import HttpEngine
from modelservers.kinds import Published, Vllm, identify
from modelservers.weights import merged_weights, write_weights
from partway.cli.doctor import command as doctor
from partway.errors import ConfigError, EngineError
from partway.models.engine import SamplingSettings
from partway.models.text import PlainPrompt
from partway.problem import Problem
from partway.sample import Request
from partway.sampling.local_engine import end_ids
from partway.solution import EMPTY, Solution
from straightline.parsing import MAX_CHARACTERS

PROBLEMS = apples(6)
MODEL = tiny_gpt_neo(PROBLEMS)
SETTINGS = SamplingSettings(max_completion_length=12)
GOOD = "answer = 1\n"


def ok(payload=None):
    return 200, {}


def serve_routes(answer=lambda payload: (200, completions(GOOD))):
    """What `transformers serve` has."""
    return {"POST /v1/completions": answer, "POST /load_model": ok, "POST /reset": ok}


@pytest.fixture
def made(tmp_path):
    """Makes engines, and closes them."""
    with ExitStack() as stack:

        def make(*urls, **options):
            said = []
            engine = HttpEngine(
                urls,
                MODEL.codec,
                ends=end_ids(MODEL),
                directory_of=lambda version: tmp_path / "weights" / f"v{version}",
                say=said.append,
                **{"weight_sync": "auto"} | options,
            )
            stack.callback(engine.close)
            engine.said = said
            return engine

        yield make


def requests(count=2):
    return [Request(problem, EMPTY, count) for problem in PROBLEMS]


def total(draws):
    return [sum(draw.count for draw in of_one) for of_one in draws]


@pytest.fixture
def connect(monkeypatch):
    """Makes engines without a tokenizer, which soon try again, and closes them."""
    monkeypatch.setattr(pool, "FIRST_PAUSE", 0.01)
    monkeypatch.delenv("PARTWAY_API_KEY", raising=False)
    with ExitStack() as stack:

        def make(*urls, **options):
            engine = HttpEngine(urls, say=(said := []).append, **{"patience": 5.0} | options)
            stack.callback(engine.close)
            engine.said = said
            return engine

        yield make


def questions(problems=1, count=4, prefix=EMPTY):
    return [Request(Problem(f"p{n}", f"question {n}", 6), prefix, count) for n in range(problems)]


def as_asked(number, payload):
    """A good server: as many completions as it is asked for."""
    return 200, completions(*(f"answer = {i}\n" for i in range(payload["n"])))


def test_without_a_tokenizer_the_question_is_sent_as_text_with_all_that_sampling_needs(connect):
    with scripted_server(as_asked) as server:
        few_shot = connect(f"{server.url}/v1/", model="tiny", prompt=PlainPrompt("# Task:\n\n"))
        settings = SamplingSettings(temperature=0.8, top_p=0.95, max_completion_length=64)
        few_shot.complete(questions(prefix=Solution(("n0 = 1",))), settings, seed=1)
        plain = connect(server.url, extra_body={"min_p": 0.1})
        plain.complete(questions(), SamplingSettings(top_k=5), 1)
        first, second = server.asked()
    assert 0 <= first.pop("seed") < 2**31
    assert first == {
        "model": "tiny",
        "prompt": "# Task:\n\n# question 0\nn0 = 1\n",
        "n": 4,
        "max_tokens": 64,
        "temperature": 0.8,
        "top_p": 0.95,
        "stop": ["\n#"],
    }
    assert (second["prompt"], second["top_k"], second["min_p"]) == ("# question 0\n", 5, 0.1)
    assert "model" not in second


def test_a_text_does_not_spell_the_token_that_its_reader_begins_with_itself(connect):
    codec = chat_model("Llama 3", PROBLEMS).codec
    for bos_id, beginning in (
        (None, "<s><|start_header_id|>"),
        (codec.tokenizer.bos_token_id, "<|start_hea"),
    ):
        with scripted_server(as_asked) as server:
            engine = connect(server.url, codec=replace(codec, bos_id=bos_id))
            engine.complete(questions(), SETTINGS, 1)
            (asked,) = server.asked()
        assert asked["prompt"].startswith(beginning)


def test_equal_completions_are_counted_and_cut_at_their_end(connect):
    texts = ("answer = 6\nprint()", "answer = 6\n# Next?", "n0 = 1\nn1")
    with scripted_server(lambda *_: (200, completions(*texts, finish_reason="length"))) as server:
        (samples,) = connect(server.url).complete(questions(count=3), SETTINGS, 1)
    assert [(one.completion, one.text, one.count, one.finished) for one in samples] == [
        ("answer = 6\n", "answer = 6\n", 2, True),
        ("n0 = 1\nn1", "n0 = 1\n", 1, False),
    ]


def test_large_counts_are_asked_for_in_several_calls(connect):
    with scripted_server(as_asked) as server:
        samples = connect(server.url).complete(questions(count=300), SETTINGS, 1)
        assert [payload["n"] for payload in server.asked()] == [128, 128, 44]
    assert total(samples) == [300]


@pytest.mark.parametrize("status", [200, 400, 422])
def test_a_server_that_gives_single_completions_is_asked_again_with_other_seeds(connect, status):
    def script(number, payload):
        refuses = status != 200 and payload["n"] > 1
        return (status, {"error": "n must be 1"}) if refuses else (200, completions(GOOD))

    with scripted_server(script) as server:
        found = connect(server.url, concurrency=1).complete(questions(problems=2, count=3), SETTINGS, 1)
        asked = server.asked()
    assert total(found) == [3, 3]
    assert [payload["n"] for payload in asked] == [3, *[1] * (5 if status == 200 else 6)]
    assert len({payload["seed"] for payload in asked}) == 6


def test_seeds_belong_to_seed_problem_and_sample_not_to_the_order_of_requests(connect):
    def seeds(problems, seed, concurrency):
        with scripted_server(lambda *_: (200, completions(GOOD))) as server:
            connect(server.url, concurrency=concurrency).complete(problems, SETTINGS, seed)
            return {(payload["prompt"], payload["seed"]) for payload in server.asked()}

    asked = questions(problems=4, count=3)
    assert seeds(asked, 1, 1) == seeds(asked[::-1], 1, 8) != seeds(asked, 2, 1)


def test_what_passes_by_waiting_is_tried_again_later_each_time(connect):
    troubles = [(429, {}), (500, {}), (502, b"<html>"), (503, {}), (504, {})]

    def script(number, payload):
        return troubles[number] if number < len(troubles) else as_asked(number, payload)

    with scripted_server(script) as server:
        engine = connect(server.url)
        assert total(engine.complete(questions(), SETTINGS, 1)) == [4]
        assert len(server.asked()) == 6
    assert len([line for line in engine.said if "no server answers" in line]) == 1
    (endpoint,) = engine.pool.endpoints
    for expected in (pool.FIRST_PAUSE, 2 * pool.FIRST_PAUSE, 17):
        before = time.monotonic()
        endpoint.failed(Trouble("?", wait=17 if expected == 17 else 0))
        assert before + expected <= endpoint.retry_at <= time.monotonic() + expected


@pytest.mark.parametrize("status", [400, 401, 404, 413])
def test_what_the_only_server_refuses_is_an_error_at_once(connect, status):
    with scripted_server(lambda *_: (status, {"error": "not so"})) as server:
        engine = connect(server.url, patience=60)
        with pytest.raises(EngineError, match=f"^{server.url}: .*status {status}: not so"):
            engine.complete(questions(count=1), SETTINGS, 1)
        assert len(server.asked()) == 1, "it is not asked again"
    assert engine.said == []


def test_a_server_that_fails_from_its_first_request_on_is_an_error(connect, monkeypatch):
    monkeypatch.setattr(pool, "FIRST_PAUSE", 0.01)
    with scripted_server(lambda *_: (500, {"error": "no model is named"})) as server:
        engine = connect(server.url, patience=20)
        with pytest.raises(EngineError, match=f"^{server.url}: .*status 500: no model is named"):
            engine.complete(questions(count=1), SETTINGS, 1)
        assert len(server.asked()) == 3


def test_a_server_that_has_answered_may_fail_more_often(connect, monkeypatch):
    monkeypatch.setattr(pool, "FIRST_PAUSE", 0.01)

    def script(number, payload):
        return (500, {"error": "out of memory"}) if 0 < number < 6 else as_asked(number, payload)

    with scripted_server(script) as server:
        engine = connect(server.url, patience=20, concurrency=1)
        assert total(engine.complete(questions(problems=2), SETTINGS, 1)) == [4, 4]
        assert len(server.asked()) == 7


def test_a_server_that_refuses_leaves_its_requests_to_the_others(connect):
    """It may lack the model or the key, or take only single requests; none of it is the others' fault."""

    def single(number, payload):
        return (400, {}) if payload["n"] > 1 else as_asked(number, payload)

    refusals = [lambda number, payload, status=status: (status, {}) for status in (401, 404, 413)]
    with ExitStack() as stack:
        bad = [stack.enter_context(scripted_server(script)) for script in refusals]
        one, good = (stack.enter_context(scripted_server(script)) for script in (single, as_asked))
        engine = connect(*(server.url for server in (*bad, one, good)), concurrency=4)
        engine.pool.look()
        assert total(engine.complete(questions(problems=12), SETTINGS, seed=1)) == [4] * 12
        assert all(1 <= len(server.asked()) <= 8 for server in bad[:2]), "they are asked less and less"
        assert {payload["n"] for payload in good.asked()} >= {4}, "it is asked for several"


def test_a_server_that_goes_on_with_another_model_is_refused(connect):
    def script(number, payload):
        names = {"model": ["one", None, "one", "other"][number]}
        return 200, completions(*[GOOD] * payload["n"]) | names

    with scripted_server(script) as server:
        engine = connect(server.url, concurrency=1)
        engine.complete(questions(problems=3), SETTINGS, 1)
        with pytest.raises(EngineError, match="it answered as one and now as other"):
            engine.complete(questions(), SETTINGS, 1)


def test_finished_results_are_handed_over_before_an_error_is_raised(connect):
    def script(number, payload):
        is_bad = "question 5" in payload["prompt"]
        return (400, {"error": "too long"}) if is_bad else as_asked(number, payload)

    with scripted_server(script) as server:
        found, stream = set(), connect(server.url, concurrency=2).stream(questions(8), SETTINGS, 1)
        with pytest.raises(EngineError, match="too long"):
            found.update(index for index, _ in stream)
    assert {0, 1, 2, 3, 4} <= found
    assert 5 not in found


def test_so_many_requests_at_once_and_no_more(connect):
    barrier = Barrier(3)

    def script(number, payload):
        barrier.wait(timeout=10)
        return as_asked(number, payload)

    with scripted_server(script) as server:
        connect(server.url, concurrency=3).complete(questions(problems=9), SETTINGS, 1)
        assert server.most_at_once == 3
    with pytest.raises(ConfigError, match="concurrency is 0"):
        connect(server.url, concurrency=0)


def test_half_a_surrogate_pair_does_not_get_into_files_and_of_an_endless_text_only_so_much(connect):
    texts = ["answer = '\ud800'\n", "n0 = 1\nn1 = " + "1" * 5_000_000]
    with scripted_server(lambda number, _: (200, completions(texts[number]))) as server:
        engine = connect(server.url)
        ((half,),) = engine.complete(questions(count=1), SETTINGS, 1)
        ((long,),) = engine.complete(questions(count=1), SETTINGS, 1)
    assert half.completion == "answer = '?'\n"
    assert (len(long.completion), long.finished) == (MAX_CHARACTERS, False)


def test_transformers_serve_is_asked_with_every_setting_and_named_the_weights(made, tmp_path):
    with routed_server(serve_routes()) as server:
        engine = made(server.url)
        engine.update(MODEL.model, 3)
        prefix = Solution(("n0 = 4",))
        [[draw]] = engine.complete([Request(PROBLEMS[0], prefix, 2)], SETTINGS, 0)
        assert (draw.text, draw.count, draw.finished, draw.weights) == ("n0 = 4\nanswer = 1\n", 2, True, 3)
        assert draw.endpoint == server.url
        _, first, second = server.asked()  # the first tries the weights
        assert first["model"] == str(tmp_path / "weights" / "v3")
        assert first["prompt"] == f"# {PROBLEMS[0].question}\nn0 = 4\n"
        assert first["seed"] != second["seed"]
        assert json.loads(first["generation_config"]) == {
            "max_new_tokens": 12,
            "eos_token_id": [MODEL.codec.eos_id],
            "pad_token_id": MODEL.codec.eos_id,
            "do_sample": True,
            "temperature": 0.8,
            "top_p": 1.0,
            "top_k": 0,
        }


def test_versions_are_whole_models_and_go_when_no_request_can_name_them(made, tmp_path):
    from partway.models.loading import load_model

    with routed_server(serve_routes()) as server:
        engine = made(server.url)
        for version in (0, 1, 2, 2):
            engine.update(MODEL.model, version)
        assert sorted(path.name for path in (tmp_path / "weights").iterdir()) == ["v1", "v2"]
        loaded = load_model(tmp_path / "weights" / "v2").model
        for name, weight in MODEL.model.state_dict().items():
            torch.testing.assert_close(loaded.state_dict()[name], weight, rtol=0, atol=0)
        assert len(server.asked("/reset")) == 3, "the same version is announced once"
        engine.rest()
        assert not list((tmp_path / "weights").iterdir())


def test_requests_are_spread_over_servers(made):
    def slow(payload):
        time.sleep(0.02)
        return 200, completions(GOOD)

    with routed_server(serve_routes(slow)) as one, routed_server(serve_routes(slow)) as other:
        engine = made(one.url, other.url)
        engine.update(MODEL.model, 0)
        engine.pool.look()
        assert total(engine.complete(requests(), SETTINGS, 0)) == [2] * 6
        counts = [len(server.asked()) for server in (one, other)]
        assert min(counts) >= 4
        assert sum(counts) == 12 + 2  # both tried the weights first


BAD = {
    "an error": lambda payload: (500, {"error": "out of memory"}),
    "no JSON": lambda payload: (200, b"<html>busy</html>"),
    "no choices": lambda payload: (200, {"choices": []}),
    "too much": lambda payload: (200, too_much()),
    "given up": lambda payload: (200, completions("", finish_reason="abort")),
    "silence": lambda payload: time.sleep(20) or (200, completions(GOOD)),
}


@pytest.mark.parametrize("fault", BAD)
def test_what_a_bad_server_does_not_answer_another_does(made, fault):
    def begins_well(payload):
        begins_well.calls += 1
        return (200, completions(GOOD)) if begins_well.calls <= 1 else BAD[fault](payload)

    begins_well.calls = 0
    with routed_server(serve_routes(begins_well)) as bad, routed_server(serve_routes()) as good:
        engine = made(bad.url, good.url, call_timeout=2.0 if fault == "silence" else 60.0)
        engine.update(MODEL.model, 0)
        draws = engine.complete(requests(3), SETTINGS, 0)
        assert total(draws) == [3] * 6
        assert {draw.endpoint for of_one in draws for draw in of_one} == {good.url}
        assert [draw.completion for of_one in draws for draw in of_one] == [GOOD] * 6
        assert any(bad.url in line and "go to the others" in line for line in engine.said), engine.said


def test_with_no_server_left_it_waits_and_goes_on_when_one_returns(made, monkeypatch):
    monkeypatch.setattr(pool, "LONGEST_PAUSE", 0.2)
    with routed_server(serve_routes()) as server:
        engine = made(server.url, patience=20)
        engine.update(MODEL.model, 0)
        port = server.server_port
    drawing = engine.stream(requests(), SETTINGS, 0)
    with ExitStack() as stack:
        again = []
        timer = Timer(0.5, lambda: again.append(stack.enter_context(routed_server(serve_routes(), port))))
        timer.start()
        draws = dict(drawing)
        timer.join()
        assert total(draws.values()) == [2] * 6
        assert again[0].asked("/reset"), "a server that returns is given the weights first"
    assert any("no server answers" in line and "waiting up to 20 s" in line for line in engine.said)
    assert any("answers again" in line for line in engine.said)


def test_after_the_timeout_it_gives_up_with_the_reason(made):
    engine = made("http://127.0.0.1:9", patience=0.3)
    start = time.monotonic()
    with pytest.raises(EngineError, match=r"no server answered for 0.3 s \(http://127.0.0.1:9: Connect"):
        engine.complete(requests(), SETTINGS, 0)
    assert 0.3 <= time.monotonic() - start < 5


@pytest.mark.parametrize("fault", ["an error", "no choices", "silence"])
def test_a_server_that_takes_weights_but_never_answers_is_given_up(made, monkeypatch, fault):
    monkeypatch.setattr(pool, "LONGEST_PAUSE", 0.2)

    def loads_only(payload):
        return (200, completions(GOOD)) if "max_tokens" in payload else BAD[fault](payload)

    with routed_server(serve_routes(loads_only)) as server:
        engine = made(server.url, patience=1.0, call_timeout=0.4)
        engine.update(MODEL.model, 0)
        with pytest.raises(EngineError, match=f"no server answered for 1 s .{server.url}: "):
            engine.complete(requests(1)[:1], SETTINGS, 0)


def test_a_paused_server_that_nobody_resumes_says_how_to(made):
    paused = {"GET /is_paused": lambda payload: (200, {"is_paused": True})}
    with routed_server(vllm_routes(**paused)) as server:
        engine = made(server.url, patience=0.3, weight_sync="none")
        with pytest.raises(EngineError, match=f"to go on: curl -X POST {server.url}/resume"):
            engine.complete(requests(), SETTINGS, 0)


def test_a_server_that_takes_no_weights_is_refused_unless_it_may_have_its_own(made):
    def several(payload):
        return 200, completions(*[GOOD] * payload["n"])

    routes = {
        "POST /v1/completions": several,
        "GET /v1/models": lambda payload: (200, {"data": [{"id": "their-model"}]}),
    }
    with routed_server(routes) as server:
        with pytest.raises(EngineError, match="set weight_sync to none"):
            made(server.url).update(MODEL.model, 0)
        engine = made(server.url, weight_sync="none")
        engine.update(MODEL.model, 0)
        draws = engine.complete(requests(5), SETTINGS, 0)
        assert total(draws) == [5] * 6
        assert {draw.weights for of_one in draws for draw in of_one} == {None}
        assert [asked["n"] for asked in server.asked()] == [5] * 6, "n samples, one request"
        assert server.asked()[0]["model"] == "their-model"


def test_all_processes_hear_that_weights_were_not_handed_over(made):
    told = []

    def tell(value):
        told.append(value)
        return value

    def listen(value):
        return told[0]

    with routed_server(serve_routes()) as server:
        first = made(server.url, weight_sync="lora", from_first=tell)
        other = made(server.url, weight_sync="lora", is_first=False, from_first=listen)
        for engine in (first, other):
            with pytest.raises(ConfigError, match="no adapter is trained"):
                engine.update(MODEL.model, 0)


def vllm_routes(**others):
    """What `vllm serve` has in its developer mode; it remembers its version."""
    state = {"version": "default", "models": ["base"]}

    def tell(payload):
        state["version"] = payload["new_version"]
        return 200, {"success": True}

    def load(payload):
        state["models"].append(payload["lora_name"])
        return 200, b"Success: LoRA adapter added successfully."

    def draw(payload):
        tokens = [*MODEL.codec.encode("n0 = 1\nanswer = n0\nx = 3\n"), MODEL.codec.eos_id]
        log_probs = [-0.5] * len(tokens)
        choice = {"text": "", "token_ids": tokens, "logprobs": {"token_logprobs": log_probs}}
        return 200, {"choices": [{**choice, "finish_reason": "stop"}] * payload["n"]}

    routes = {
        "GET /version": lambda payload: (200, {"version": "0.32.0"}),
        "POST /tokenize": ok,
        "GET /v1/models": lambda payload: (200, {"data": [{"id": name} for name in state["models"]]}),
        "POST /v1/completions": draw,
        "POST /pause": ok,
        "POST /resume": ok,
        "POST /collective_rpc": lambda payload: (200, {"results": [None]}),
        "POST /reset_prefix_cache": lambda payload: (200, {"success": True}),
        "POST /update_weight_version": tell,
        "GET /weight_info": lambda payload: (200, {"weight_version": state["version"]}),
        "POST /v1/load_lora_adapter": load,
        "POST /v1/unload_lora_adapter": lambda payload: (200, b"Success: LoRA adapter removed successfully."),
    }
    return routes | others


def updates(server):
    """The calls that change a server, in their order."""
    asked = [(path, payload) for method, path, payload in server.calls if method == "POST"]
    return [(path, payload) for path, payload in asked if path != "/v1/completions"]


def test_vllm_reloads_whole_weights_while_paused_after_a_look_that_it_sees_them(made, tmp_path):
    with routed_server(vllm_routes()) as server:
        engine = made(server.url)
        engine.update(MODEL.model, 7)
        directory = str(tmp_path / "weights" / "v7")
        probe = {"weights_path": f"{directory}/visible", "is_checkpoint_format": False}
        assert updates(server) == [
            ("/collective_rpc", {"method": "reload_weights", "kwargs": probe}),
            ("/pause?mode=wait", None),
            ("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": directory}}),
            ("/reset_prefix_cache", None),
            ("/update_weight_version", {"new_version": directory}),
            ("/resume", None),
        ]
        assert server.calls[-2][:2] == ("GET", "/weight_info")  # then its log-probs are compared


def test_whole_weights_wait_until_a_server_has_answered_what_it_was_asked(made):
    routes, is_asked, may_answer = vllm_routes(), Event(), Event()
    draw = routes["POST /v1/completions"]

    def slowly(payload):
        if payload["max_tokens"] == SETTINGS.max_completion_length:  # and not a look at its log-probs
            is_asked.set()
            may_answer.wait(30)
        return draw(payload)

    routes["POST /v1/completions"] = slowly
    with routed_server(routes) as server, ThreadPoolExecutor() as executor:
        engine = made(server.url)
        engine.update(MODEL.model, 0)
        server.calls.clear()
        drawing = executor.submit(engine.complete, requests()[:1], SETTINGS, 0)
        assert is_asked.wait(30)
        updating = executor.submit(engine.update, MODEL.model, 1)
        _, waiting = wait([updating], timeout=1)
        early = updates(server)
        may_answer.set()
        updating.result(60)
        assert waiting == {updating}
        assert early == [], "a sample would be drawn with the weights of two versions"
        assert {draw.weights for of_one in drawing.result(60) for draw in of_one} == {0}


def test_vllm_is_never_left_paused_and_a_path_it_cannot_see_is_not_tried(made):
    def broken(payload):
        is_probe = payload["kwargs"]["weights_path"].endswith("visible")
        return (200, {}) if is_probe and not broken.blind else (500, {"error": "no such file"})

    broken.blind = False
    with routed_server(vllm_routes(**{"POST /collective_rpc": broken})) as server:
        with pytest.raises(EngineError, match="no such file"):
            made(server.url).update(MODEL.model, 0)
        assert updates(server)[-1] == ("/resume", None)
        broken.blind, server.calls[:] = True, []
        with pytest.raises(EngineError, match=r"cannot read .*; put output_dir where all servers see it"):
            made(server.url).update(MODEL.model, 0)
        assert [path for path, _ in updates(server)] == ["/collective_rpc"], "it was not paused for nothing"


def test_what_vllm_reads_first_is_whole_even_if_another_server_has_only_begun_it(tmp_path):
    read = []

    class Calls:
        def post(self, path, payload, *_):
            read.append([file.name for file in Path(payload["kwargs"]["weights_path"]).iterdir()])

    (tmp_path / "visible").mkdir()
    Vllm(Calls())._check_visible(Published(0, tmp_path, "full"))
    assert read == [["model.safetensors"]]


@pytest.mark.parametrize("is_honest", [True, False])
def test_log_probs_are_compared_and_a_version_number_is_not_believed(made, is_honest):
    def draw(payload):
        tokens = MODEL.codec.encode("n0 = 1\n")
        with torch.no_grad():
            rows = MODEL.model.eval()(torch.tensor([payload["prompt"] + tokens])).logits[0].log_softmax(-1)
        first = len(payload["prompt"]) - 1
        true = [rows[first + place, token].item() for place, token in enumerate(tokens)]
        said = true if is_honest else [value - 0.2 for value in true]
        return 200, {"choices": [{"text": "", "token_ids": tokens, "logprobs": {"token_logprobs": said}}]}

    with routed_server(vllm_routes(**{"POST /v1/completions": draw})) as server:
        engine = made(server.url)
        for version in (0, 1):
            engine.update(MODEL.model, version)
        doubts = [line for line in engine.said if "draws with other weights than it was given" in line]
        assert len(doubts) == (0 if is_honest else 1), "said once"


def test_vllm_that_says_it_has_other_weights_is_not_believed(made):
    stuck = {"GET /weight_info": lambda payload: (200, {"weight_version": "default"})}
    with (
        routed_server(vllm_routes(**stuck)) as server,
        pytest.raises(EngineError, match="its weights are 'default', expected"),
    ):
        made(server.url).update(MODEL.model, 0)


def test_vllm_reads_our_tokens_and_its_own_are_cut_where_the_solution_ends(made):
    with routed_server(vllm_routes()) as server:
        engine = made(server.url)
        engine.update(MODEL.model, 0)
        [[draw]] = engine.complete([Request(PROBLEMS[0], EMPTY, 4)], SETTINGS, 5)
        *_, asked = server.asked()
        assert asked["prompt"] == MODEL.codec.prompt(PROBLEMS[0].question)
        assert (asked["n"], asked["top_k"], asked["temperature"], asked["max_tokens"]) == (4, 0, 0.8, 12)
        assert (asked["model"], asked["logprobs"], asked["return_token_ids"]) == ("base", 0, True)
        assert "seed" not in asked  # it would end a vLLM on a CPU
        expected = MODEL.codec.encode("n0 = 1\nanswer = n0\n")
        assert (draw.completion, draw.finished, draw.count) == ("n0 = 1\nanswer = n0\n", True, 4)
        assert (draw.tokens, draw.log_prob) == (tuple(expected), -0.5 * len(expected))


def choice(**fields):
    return {"choices": [{"text": "", "token_ids": [5, 6], "finish_reason": "stop"} | fields]}


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (choice(token_ids=[5] * 14), "14 tokens came and 12 were asked for"),
        (choice(token_ids=[5, "six"]), "tokens that are not among the model's"),
        (choice(token_ids=[5, -1]), "tokens that are not among the model's"),
        (choice(token_ids=[5, 100]), "tokens that are not among the model's 100 tokens"),
        (choice(token_ids=[5, 10**30]), "tokens that are not among the model's"),
        (choice(token_ids=[5, 6.0]), "tokens that are not among the model's"),
        (choice(token_ids=[5, True]), "tokens that are not among the model's"),
        (choice(finish_reason="abort"), "a completion was given up"),
        (choice(finish_reason="error"), "a completion was given up"),
        (choice(text=None), "the text of a completion is not text"),
        ({"choices": "many"}, "expected choices with texts"),
        ({"choices": [choice()["choices"][0]] * 3}, "3 completions came and 2 were asked for"),
        ([], "expected choices with texts"),
    ],
)
def test_an_answer_is_believed_only_within_what_was_asked_for(said, complaint):
    with pytest.raises(Trouble, match=complaint):
        pool.completions(said, asked=2, longest=12, vocabulary=100)


def read(**fields):
    return pool.completions(choice(**fields), asked=1, longest=12, vocabulary=100)


@pytest.mark.parametrize(
    "said",
    [
        *([0.0], [0.0, float("nan")], [0.0, float("-inf")], [0.0, "low"], [0.0, True], [0.0, None]),
        *([0.0, 0.5], [0.0, -(10**400)], [-1e308, -1e308], None, "low", {"0": 0.0, "1": 0.0}),
    ],
    ids=range(12),
)
def test_log_probs_that_cannot_be_used_are_left_out(said):
    (written,) = read(logprobs={"token_logprobs": said})
    assert (written.tokens, written.log_probs) == ((5, 6), None)


@pytest.fixture(scope="module")
def adapted():
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["q_proj", "c_fc"], task_type="CAUSAL_LM")
    model = peft.get_peft_model(tiny_gpt_neo(PROBLEMS).model, config)
    for name, weight in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(weight, std=0.3)
    return model


def test_vllm_loads_adapters_under_new_names_and_unloads_them_late(made, tmp_path, adapted):
    with routed_server(vllm_routes()) as server:
        engine = made(server.url)
        for version in range(3):
            engine.update(adapted, version)
            engine.complete(requests(1)[:1], SETTINGS, 0)
        names = [(path, payload["lora_name"]) for path, payload in updates(server)]
        load, unload = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
        assert names == [
            (load, "partway-0"),
            (load, "partway-1"),
            (load, "partway-2"),
            (unload, "partway-0"),
        ]
        named = [asked["model"] for asked in server.asked()]
        assert named == ["partway-0", "partway-0", "partway-1", "partway-1", "partway-2", "partway-2"]
        assert (tmp_path / "weights" / "v2" / "adapter_model.safetensors").is_file()
        assert not (tmp_path / "weights" / "v2" / "model.safetensors").exists()


def test_whole_weights_of_an_adapted_model_are_the_merged_ones_and_nothing_changes_here(tmp_path, adapted):
    import copy

    from partway.models.loading import load_model

    before = {name: weight.clone() for name, weight in adapted.state_dict().items()}
    write_weights(adapted, tmp_path, "full")
    MODEL.codec.tokenizer.save_pretrained(tmp_path)
    expected = copy.deepcopy(adapted).merge_and_unload().state_dict()
    loaded = load_model(tmp_path).model.state_dict()
    assert loaded.keys() == expected.keys()
    for name, weight in expected.items():
        torch.testing.assert_close(loaded[name], weight)
    assert any(
        not torch.equal(weight, MODEL.model.state_dict()[name])
        for name, weight in merged_weights(adapted.get_base_model()).items()
    )
    assert all(torch.equal(weight, before[name]) for name, weight in adapted.state_dict().items())


def test_an_output_layer_that_is_tied_is_there_under_its_own_name_too(tmp_path, adapted):
    """Or vLLM on a CPU would go on with the old one."""
    for name, model in {"whole": MODEL.model, "merged": adapted}.items():
        (tmp_path / name).mkdir()
        write_weights(model, tmp_path / name, "full")
        saved = load_file(tmp_path / name / "model.safetensors")
        (embeddings,) = (weight for key, weight in saved.items() if key.endswith("wte.weight"))
        assert "lm_head.weight" not in saved
        output = load_file(tmp_path / name / "output_layer.safetensors")
        assert output.keys() == {"lm_head.weight"}
        assert torch.equal(output["lm_head.weight"], embeddings)


def test_an_output_layer_of_its_own_is_not_written_twice(tmp_path):
    model = tiny_gpt_neo(PROBLEMS).model
    model.config.tie_word_embeddings = False
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone() + 1)
    write_weights(model, tmp_path, "full")
    assert "lm_head.weight" in load_file(tmp_path / "model.safetensors")
    assert not (tmp_path / "output_layer.safetensors").exists()


def sglang_routes(**others):
    state = {"path": "base"}

    def load(payload):
        state["path"] = payload["model_path"]
        return 200, {"success": True, "message": "Succeeded to update model weights."}

    routes = {
        "GET /v1/models": lambda payload: (200, {"data": [{"id": "base"}]}),
        "POST /v1/completions": lambda payload: (200, completions(*[GOOD] * payload["n"])),
        "POST /update_weights_from_disk": load,
        "GET /get_model_info": lambda payload: (200, {"model_path": state["path"]}),
        "POST /load_lora_adapter": lambda payload: (200, {"success": True}),
        "POST /unload_lora_adapter": lambda payload: (200, {"success": True}),
    }
    return routes | others


def test_sglang_takes_weights_from_disk_and_is_asked_with_our_tokens(made, tmp_path):
    with routed_server(sglang_routes()) as server:
        engine = made(server.url)
        engine.update(MODEL.model, 1)
        directory = str(tmp_path / "weights" / "v1")
        body = {"model_path": directory, "weight_version": directory}
        assert updates(server) == [("/update_weights_from_disk", body)]
        assert total(engine.complete(requests(3), SETTINGS, 0)) == [3] * 6
        asked = server.asked()[-1]
        assert (asked["n"], asked["top_k"], type(asked["prompt"])) == (3, -1, list)


def test_a_model_with_half_a_character_or_a_novel_for_a_name_is_asked_all_the_same(made):
    for name, sent in (("\ud800", "\ud800"), ("x" * 4_000, None)):
        named = {"GET /v1/models": lambda payload, name=name: (200, {"data": [{"id": name}]})}
        with routed_server(sglang_routes(**named)) as server:
            engine = made(server.url)
            engine.update(MODEL.model, 0)
            assert total(engine.complete(requests(), SETTINGS, 0)) == [2] * 6
            assert server.asked()[-1].get("model") == sent


def test_sglang_that_did_not_load_is_not_used(made):
    failed = {
        "POST /update_weights_from_disk": lambda payload: (200, {"success": False, "message": "OO\n\x1b[2JM"})
    }
    with (
        routed_server(sglang_routes(**failed)) as server,
        pytest.raises(EngineError, match=r"did not load the weights: OO \\x1b\[2JM"),
    ):
        made(server.url).update(MODEL.model, 0)


def test_sglang_names_adapters_behind_its_model(made, tmp_path, adapted):
    with routed_server(sglang_routes()) as server:
        engine = made(server.url)
        engine.update(adapted, 4)
        engine.complete(requests(1)[:1], SETTINGS, 0)
        path = str(tmp_path / "weights" / "v4")
        assert updates(server) == [("/load_lora_adapter", {"lora_name": "partway-4", "lora_path": path})]
        assert {asked["model"] for asked in server.asked()} == {"base:partway-4"}


@pytest.mark.parametrize(
    ("routes", "name", "forms"),
    [
        (serve_routes(), "transformers serve", ("full",)),
        (vllm_routes(), "vLLM", ("full", "lora")),
        (sglang_routes(), "SGLang", ("full", "lora")),
        ({"POST /v1/completions": ok}, "OpenAI-style server", ()),
    ],
)
def test_a_server_is_known_by_its_routes(made, routes, name, forms):
    with routed_server(routes) as server:
        engine = made(server.url)
        kind = identify(engine.pool.endpoints[0].calls)
        assert (kind.name, tuple(kind.forms)) == (name, forms)


def test_vllm_without_its_developer_mode_takes_no_whole_weights(made):
    routes = {route: answer for route, answer in vllm_routes().items() if route != "POST /pause"}
    with routed_server(routes) as server:
        kind = identify(made(server.url).pool.endpoints[0].calls)
        assert tuple(kind.forms) == ("lora",)
        assert "VLLM_SERVER_DEV_MODE=1" in kind.advice()


def checked_up(*words):
    """What `partway doctor --engine` shows, and its exit code."""
    result = CliRunner().invoke(doctor, words)
    return result.exit_code, result.output


def test_the_doctor_says_what_a_server_is_and_how_it_takes_weights():
    with routed_server(vllm_routes()) as server:
        assert checked_up("--engine", server.url) == (
            0,
            f"{server.url}\n"
            "  server: vLLM 0.32.0\n"
            "  model: base\n"
            "  weights given last: none, it has those it was started with\n"
            "  takes: whole weights (/collective_rpc reload_weights), adapters (/v1/load_lora_adapter)\n"
            "  says log probs: yes\n",
        )
    with routed_server(serve_routes()) as server:
        code, said = checked_up("--engine", server.url)
        assert code == 0
        assert "server: transformers serve\n  model: the one a request names\n" in said
        assert "for more: it takes no adapters, and whole weights only if it was started without" in said


def test_the_doctor_says_how_to_resume_a_paused_server():
    paused = {"GET /is_paused": lambda payload: (200, {"is_paused": True})}
    with routed_server(vllm_routes(**paused)) as server:
        _, said = checked_up("--engine", server.url)
        assert f"paused: yes, requests wait; to go on: curl -X POST {server.url}/resume\n" in said


def test_the_doctor_fails_for_a_server_that_does_not_answer_and_shows_the_others():
    named = {"GET /v1/models": lambda payload: (200, {"data": [{"id": "a\x1b[2Jmodel" + "x" * 999}]})}
    with routed_server(vllm_routes(**named)) as server:
        code, said = checked_up("--engine", f"http://127.0.0.1:9,{server.url}")
    assert code == 1
    assert (
        "http://127.0.0.1:9\n  trouble: ConnectError All connection attempts failed; does a server run"
        in said
    )
    assert "model: a\\x1b[2Jmodel" in said
    assert len(said) < 1500


def test_transformers_serve_with_its_own_weights_is_told_which_model(made, monkeypatch):
    monkeypatch.setattr(MODEL.codec.tokenizer, "name_or_path", "some/model")
    named = []

    def answer(payload):
        named.append(payload.get("model"))
        return 200, completions(GOOD)

    with routed_server(serve_routes(answer)) as server:
        made(server.url, weight_sync="none").complete(requests(1)[:1], SETTINGS, 0)
    assert set(named) == {"some/model"}
