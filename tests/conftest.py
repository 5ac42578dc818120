"""What all tests share: where the real data is, if it is anywhere."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Tests run side by side, one process to a core; before torch is imported, and for the processes they start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Some virtual machines announce matrix instructions (AMX) that their host then refuses: bfloat16 would crash.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("PARTWAY_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set PARTWAY_DATA to its folder")
    return folder
