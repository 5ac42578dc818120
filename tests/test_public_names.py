import subprocess
import sys

import partway

PUBLIC = {
    "EMPTY", "Failure", "PartwayError", "Problem", "Solution", "SolutionBuffer", "State", "Trace", "Verdict",
    "is_correct", "load_problems", "trace", "trace_all",
}  # fmt: skip


def test_the_public_names():
    assert set(partway.__all__) >= PUBLIC
    assert all(hasattr(partway, name) for name in partway.__all__)


def test_importing_partway_is_quick_and_brings_no_torch():
    script = (
        "import sys, time; start = time.process_time(); import partway; "
        "print(time.process_time() - start, 'torch' in sys.modules, 'numpy' in sys.modules)"
    )
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, text=True) for _ in range(3)]
    seconds, has_torch, has_numpy = min(run.stdout.split() for run in runs)
    assert float(seconds) < 0.2
    assert (has_torch, has_numpy) == ("False", "False")
