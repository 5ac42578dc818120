# %% [markdown]
# # A tour of partway
#
# Programs, their states, a buffer that grows, a tiny model that learns for a minute, and what it found.
# It needs no GPU and no network: `pip install 'partway[plots]'`.

# %% [markdown]
# A problem has a question, an answer and sometimes a written solution, the reference. Its program runs step
# by step; the state after a step is what all variables hold, whatever their names (here sorted as text).

# %%
from partway import Problem, SolutionBuffer, trace

oil = Problem(
    "oil",
    "10 ml of oil for each wheel of a bicycle and 5 ml for the rest: how much in total?",
    answer=25,
    reference="n0 = 2\nn1 = 10\nn2 = 5\nt0 = n0 * n1\nanswer = t0 + n2",
)
for prefix, state in trace(oil.reference).prefixes():
    print(f"{prefix.steps[-1]:<20} {{{state}}}")

# %% [markdown]
# This one gives a wrong answer. But after three steps it holds what the reference holds after three steps:
# its beginning is right.

# %%
wrong = "n0 = 10\nn1 = 5\nn2 = 2\nt0 = n0 / n1\nanswer = t0 * 3"
for prefix, state in trace(wrong).prefixes():
    print(f"{prefix.steps[-1]:<20} {{{state}}}")

# %% [markdown]
# A buffer begins with the reference and judges one sample after the other. Of a sample with a right answer
# it keeps all (fully correct, FCS), of another one the longest right beginning (partially correct, PCS).

# %%
samples = {
    "wrong, begins well": wrong,
    "right in another way": "n0 = 10\nn1 = 2\nn2 = 5\nt0 = n0 * n1\nanswer = n2 + t0",
    "the same, other spaces": "n0=10\nn1=2\nn2=5\nt0=(n0*n1)\nanswer=n2+t0",
    "the same beginning": "n0 = 10\nn1 = 5\nn2 = 2\nanswer = n0 - n2",
    "fails in its last step": "n0 = 5\nn1 = 10\nn2 = 2\nt0 = n1 * n2\nanswer = t0 / 0",
    "nothing is right": "n0 = 7\nanswer = n0 * 2",
}
buffer = SolutionBuffer.seeded(oil)
print(f"{'sample':<23} {'verdict':<24} FCS PCS")
for name, text in samples.items():
    verdict = buffer.consider(trace(text))
    print(f"{name:<23} {verdict:<24} {len(buffer.fully_correct):>3} {len(buffer.partially_correct):>3}")

# %% [markdown]
# What it holds now, side by side. The same letter is the same state.

# %%
buffer

# %% [markdown]
# Now a model does the sampling. Of 160 built-in story problems it may see 16 references; of the others only
# the answer. The model has a million weights and has read other problems of this kind.

# %%
import tempfile
from dataclasses import replace

from partway.demo.stories import built_in_problems
from partway.training import SelfSamplingConfig, SelfSamplingTrainer

problems = built_in_problems({"train": 160, "test": 60}, seed=0)
train = problems["train"][:16] + [replace(problem, reference=None) for problem in problems["train"][16:]]
folder = tempfile.TemporaryDirectory()
config = SelfSamplingConfig(
    output_dir=f"{folder.name}/run",
    max_steps=40,
    learning_rate=2e-4,
    warmup_steps=5,
    per_device_train_batch_size=16,
    num_generations=4,  # samples of each problem in a step
    solved_share=0.5,  # of a batch: problems that have a solution, written or found
    spurious="drop",  # forget what is right by luck
    max_completion_length=120,
    logging_steps=5,
    disable_tqdm=True,
    report_to="none",
)
trainer = SelfSamplingTrainer("tiny-storyproblems", config, train_dataset=train)
print(train[16].question)

# %% [markdown]
# Before it trains: how many of 60 test problems does it solve, and how many would random programs solve?
# pass@k is the share of problems of which at least one of k samples is right.

# %%
from partway import PYTHON
from partway.evaluation import EvaluationPlan, evaluate
from partway.measuring.chance import Chance

plan = EvaluationPlan(samples=10, ks=(1, 5, 10), pass1_samples=0)
measured = {
    "chance": evaluate(Chance(train, PYTHON), problems["test"], plan),
    "before training": evaluate(trainer.engine, problems["test"], plan),
}

# %% [markdown]
# It trains for about a minute: each step samples solutions of 16 problems, runs them, keeps what is right,
# and learns from all that is kept.

# %%
trainer.train()
growth = [line for line in trainer.run.metrics() if "buffer/fcs_per_problem" in line]
print({key: round(growth[-1][key], 2) for key in ("step", "loss", "buffer/fcs_per_problem")})

# %% [markdown]
# What the buffers held while it trained, for each problem.

# %%
from matplotlib import pyplot

figure, axes = pyplot.subplots(figsize=(6, 2.4), layout="constrained")
for key, label in [("fcs", "fully correct"), ("pcs", "partially correct")]:
    kept = [line[f"buffer/{key}_per_problem"] for line in growth]
    axes.plot([line["step"] for line in growth], kept, label=label)
axes.set(xlabel="training step", ylabel="kept per problem")
axes.legend()
ends = [f"{growth[-1][f'buffer/{key}_per_problem']:.2f}" for key in ("fcs", "pcs")]
figure.set_label(  # what it shows, for whoever cannot see it
    f"Solutions kept per problem over {growth[-1]['step']} training steps, as two lines. "
    f"At the end {ends[0]} are fully and {ends[1]} partially correct."
)
pyplot.close(figure)  # a notebook would show it twice
figure

# %% [markdown]
# What it found: solutions of problems that had none. This is the first of them, with its states.

# %%
found = [b for b in trainer.buffers.values() if b.problem.reference is None and b.fully_correct]
print(f"{len(found)} of {len(train) - 16} problems without a reference have a solution now. One of them:\n")
print(found[0].problem.question)
for prefix, state in trace(found[0].fully_correct[0]).prefixes():
    print(f"{prefix.steps[-1]:<24} {{{state}}}")

# %% [markdown]
# pass@k in %, with 95% intervals over problems: far above chance, as before. A minute and 60 test problems
# show no gain; `partway demo` takes five minutes, compares with learning the references alone, and does.

# %%
measured["after training"] = evaluate(trainer.engine, problems["test"], plan)
print(" " * 16, *(f"pass@{k:<15}" for k in plan.ks))
for name, evaluation in measured.items():
    values = [evaluation.metrics[f"pass@{k}"] for k in plan.ks]
    cells = [f"{100 * value.value:.1f} ({100 * value.low:.1f} to {100 * value.high:.1f})" for value in values]
    print(f"{name:<16}", *(f"{cell:<20}" for cell in cells))
