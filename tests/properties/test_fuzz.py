import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "cases" / "fuzz.py"


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is not limited elsewhere")
def test_a_thousand_mutants_break_nothing(tmp_path):
    command = [sys.executable, FUZZ, "--programs", "1000", "--seed", "1"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    environment.pop("COVERAGE_PROCESS_CONFIG", None)  # measured elsewhere; here it would only take time
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert list(tmp_path.iterdir()) == []
