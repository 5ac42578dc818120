"""Chat models are asked through their own templates, and what is shipped asks the same."""

from dataclasses import replace

import pytest
import torch
from chat_templates import TEMPLATES, chat_model, chat_tokenizer
from scoring_cases import log_probs
from training_cases import apples
from transformers import AutoTokenizer, pipeline

from partway.errors import ConfigError, ModelError, ProblemError
from partway.language import PYTHON, Language
from partway.language.language import Instruction
from partway.learning.scoring import Scorer
from partway.learning.token_tree import Target, Targets
from partway.models.engine import SamplingSettings
from partway.models.loading import load_model
from partway.models.prompts import FENCE, Asking
from partway.models.text import AnswerWatch, Codec, TemplatePrompt, plain_prompt, prompt_of
from partway.models.tiny import train_tokenizer
from partway.sample import Request
from partway.sampling.local_engine import LocalEngine
from partway.solution import EMPTY, Solution
from partway.training import SelfSamplingConfig, SelfSamplingTrainer

PROBLEMS = apples(6)
QUESTION = "How many apples?"


@pytest.fixture(params=TEMPLATES)
def name(request) -> str:
    return request.param


def test_the_question_stands_between_the_instruction_and_an_opened_block(name):
    codec = chat_model(name, PROBLEMS).codec
    text = codec.question.text(f"  {QUESTION}\n")
    before, _, after = text.partition(QUESTION)
    assert PYTHON.instruction.words in before
    assert after.endswith(TEMPLATES[name][3] + "```python\n")
    assert codec.decode(codec.prompt(QUESTION)) == text
    assert not text.startswith("<s><s>")


def test_an_answer_closes_with_the_fence_and_the_token_that_ends_a_turn(name):
    codec = chat_model(name, PROBLEMS).codec
    solution = Solution(("n0 = 1", "answer = n0"))
    target = codec.target(solution, finished=True)
    assert codec.decode(target) == f"n0 = 1\nanswer = n0\n```{TEMPLATES[name][2]}"
    assert codec.target(solution.prefix(1), finished=False) == target[: len(codec.steps(solution.prefix(1)))]
    assert codec.solution_text(target[:-1]) == "n0 = 1\nanswer = n0\n"


def test_a_template_says_the_same_after_it_was_saved(name, tmp_path):
    codec = chat_model(name, PROBLEMS).codec
    codec.tokenizer.save_pretrained(tmp_path)
    again = Codec.of(AutoTokenizer.from_pretrained(tmp_path))
    assert isinstance(again.question, TemplatePrompt)
    assert again.prompt(QUESTION) == codec.prompt(QUESTION)
    assert again.closing == codec.closing
    twice = Asking().prepared(again.tokenizer)
    assert twice.chat_template == codec.tokenizer.chat_template


def test_trees_and_flat_rows_score_a_chat_alike(name):
    language_model = chat_model(name, PROBLEMS)
    codec, model = language_model.codec, language_model.model.double()
    found = [codec.target(problem.reference, finished=True) for problem in PROBLEMS[:2]]
    found.append(codec.steps(PROBLEMS[0].reference.prefix(2)))
    kinds = ("reference", "fully_correct", "partially_correct")
    targets = Targets(
        tuple(codec.prompt(QUESTION)),
        tuple(Target(tuple(tokens), kind) for tokens, kind in zip(found, kinds, strict=True)),
    )
    [scored] = log_probs(Scorer(model, codec.pad_id), model, [targets])
    for tokens, log_prob in zip(found, scored, strict=True):
        row = torch.tensor([[*codec.prompt(QUESTION), *tokens]])
        log_probs_V = model(row).logits.log_softmax(-1)[0, -len(tokens) - 1 : -1]
        assert log_prob.item() == pytest.approx(log_probs_V.gather(1, row[:, -len(tokens) :].T).sum().item())


def test_a_question_that_spells_special_tokens_cannot_end_its_turn(name):
    codec = chat_model(name, PROBLEMS).codec
    spelled = f"How many? {TEMPLATES[name][2]} And now?"
    plain, tricky = codec.prompt("How many? And now?"), codec.prompt(spelled)
    assert tricky.count(codec.eos_id) == plain.count(codec.eos_id)
    assert spelled in codec.decode(tricky)


def test_a_closed_block_ends_a_sample_and_is_no_part_of_it():
    language_model = chat_model("SmolLM2", PROBLEMS)
    codec = language_model.codec
    watch = AnswerWatch(codec, language_model.model.config.vocab_size, PYTHON)
    for text, ends in (("n0 = 1\n```\n", True), ("n0 = 1\nn1 = 2\n", False), ("answer = 1\n", True)):
        assert watch.closes(codec.encode(text)) is ends
    assert codec.solution_text(codec.encode("n0 = 1\n```\nIt is easy")) == "n0 = 1\n"
    assert codec.solution_text(codec.encode("```")) == ""


def test_settings_decide_how_a_question_is_put(tmp_path):
    tokenizer = chat_tokenizer("SmolLM2", PROBLEMS)
    assert prompt_of(tokenizer).text(QUESTION) == f"# {QUESTION}\n"  # unmarked: trained by somebody else
    assert prompt_of(Asking("none").prepared(tokenizer)).text(QUESTION) == f"# {QUESTION}\n"
    assert Asking("none").prepared(tokenizer).chat_template is None
    assert "Be brief." in prompt_of(Asking(system_prompt="Be brief.").prepared(tokenizer)).text(QUESTION)
    file = tmp_path / "prompt.jinja"
    file.write_text("Q: {{ question }}\nA:\n", encoding="utf-8")
    for template in (str(file), "Q: {{ question }}\nA:\n"):
        own = prompt_of(Asking(prompt_template=template).prepared(tokenizer))
        assert (own.text(QUESTION), own.closing) == (f"Q: {QUESTION}\nA:\n", "")


@pytest.mark.parametrize("template", ["no question here {{ }}", "nowhere.jinja"])
def test_templates_without_a_question_are_refused(template):
    with pytest.raises(ConfigError, match="prompt_template is"):
        Asking(prompt_template=template).prepared(chat_tokenizer("SmolLM2", PROBLEMS))


def test_a_template_that_cannot_ask_is_refused():
    tokenizer = chat_tokenizer("SmolLM2", PROBLEMS)
    tokenizer.chat_template = "{{ raise_exception('never') }}"
    with pytest.raises(ModelError, match="set chat_template to none"):
        Asking().prepared(tokenizer)


def test_a_question_that_its_template_fails_for_is_left_out_or_known_before_the_first_step(tmp_path):
    asks, odd = apples(2)
    odd = replace(odd, question="7 apples, no mark")
    config = SelfSamplingConfig(
        output_dir=str(tmp_path),
        max_steps=1,
        effective_batch_size=1,
        prompt_template="{{ question.split('?')[1].strip() }}{{ question }}",
        disable_tqdm=True,
        use_cpu=True,
    )
    tokenizer = chat_tokenizer("Qwen2.5", [asks, odd])
    model = chat_model("Qwen2.5", [asks, odd]).model
    trainer = SelfSamplingTrainer(model, config, [asks, odd], processing_class=tokenizer)
    assert [(one.id, one.reason) for one in trainer.left_out] == [
        (odd.id, "the chat template fails for '7 apples, no mark': list object has no element 1")
    ]
    with pytest.raises(ProblemError, match="the chat template fails for '7 apples, no mark'"):
        SelfSamplingTrainer(model, config, [asks], eval_dataset=[odd], processing_class=tokenizer)


def test_what_is_shipped_answers_in_a_pipeline_as_it_does_here(tmp_path):
    problems = apples(1)
    language_model = chat_model("Qwen2.5", problems)
    config = SelfSamplingConfig(
        output_dir=str(tmp_path),
        max_steps=60,
        effective_batch_size=1,
        learning_rate=1e-2,
        warmup_steps=2,
        self_sampling="none",
        objective="mle",
        disable_tqdm=True,
        use_cpu=True,
        report_to="none",
    )
    trainer = SelfSamplingTrainer(
        language_model.model, config, problems, processing_class=chat_tokenizer("Qwen2.5", problems)
    )
    trainer.train()
    loaded = load_model(tmp_path / "final")
    assert FENCE in loaded.codec.tokenizer.chat_template
    [[draw]] = LocalEngine(loaded).complete(
        [Request(problems[0], EMPTY, 1)], SamplingSettings(temperature=0), seed=0
    )
    assert Solution.parse(draw.text) == problems[0].reference
    asked = [{"role": "user", "content": problems[0].question}]
    write = pipeline("text-generation", model=str(tmp_path / "final"), device="cpu")
    answer = write(asked, max_new_tokens=60, do_sample=False)[0]["generated_text"][-1]["content"]
    assert answer == f"{draw.text}```"


class Sql(Language):
    """Not Python: only how it is asked for matters here."""

    instruction = Instruction("SQL", "selects the answer", comment="-- ", fence="sql")


def test_the_language_says_how_a_question_is_a_comment_and_the_tokenizer_keeps_it(tmp_path):
    tokenizer = Asking(language=Sql()).prepared(train_tokenizer(apples(3)))
    assert prompt_of(tokenizer) == plain_prompt(Sql())
    assert prompt_of(tokenizer).text(" How\nmany? ") == "-- How many?\n"
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert prompt_of(again) == prompt_of(tokenizer)
    chat = [{"role": "user", "content": " How\nmany? "}]
    assert again.apply_chat_template(chat, tokenize=False) == "-- How many?\n"  # as a chat server asks
    assert Asking().prepared(again).chat_template is None, "asked for Python, it is asked plainly"


def test_a_chat_model_is_told_the_language_and_opens_its_block():
    tokenizer = Asking(language=Sql()).prepared(chat_tokenizer(next(iter(TEMPLATES)), PROBLEMS))
    asked = prompt_of(tokenizer).text("How many?")
    assert Sql.instruction.words in asked
    assert asked.endswith("```sql\n")
