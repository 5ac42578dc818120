import json
import subprocess
import sys

import pytest

from partway.execution.workers import inspect_sandbox

linux_only = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="these walls are the Linux kernel's"
)

PRELUDE = """
import errno, json, os, socket, sys
from partway.execution import isolation
def fails(attempt):
    try:
        attempt()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "allowed"
"""


def in_a_process(code: str) -> dict:
    """What `code` puts into `report`, run in a process that may wall itself in."""
    script = f"{PRELUDE}{code}\nos.write(1, json.dumps(report).encode())\nos._exit(0)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=60)
    report: dict = json.loads(done.stdout)
    return report


@linux_only
def test_a_worker_here_is_refused_everything_it_tries():
    report = inspect_sandbox()
    assert report.refused
    assert all(report.refused.values()), report


def test_without_walls_every_attempt_is_seen_to_succeed():
    report = in_a_process(
        "from partway.execution import worker_main\n"
        "worker_main._confine = lambda *limits: {}\n"
        "report = worker_main._probe()['refused']"
    )
    assert len(report) == 6
    assert not any(report.values()), report


@linux_only
def test_landlock_alone_keeps_files_closed():
    report = in_a_process(
        "status = isolation.confine_worker()\n"
        "name = next(name for name in status if 'landlock' in name)\n"
        "report = {'status': status[name], 'read': fails(lambda: os.open('/etc/passwd', os.O_RDONLY)),\n"
        "          'write': fails(lambda: os.open('/tmp/partway-test', os.O_WRONLY | os.O_CREAT))}"
    )
    if report["status"] != "active":
        pytest.skip(f"no Landlock here: {report['status']}")
    assert report["read"] == report["write"] == "EACCES"


@linux_only
def test_seccomp_alone_refuses_calls_but_lets_a_program_compute():
    report = in_a_process(
        "status = isolation.confine_program(1 << 40, 100, os.getppid())\n"
        "name = next(name for name in status if 'seccomp' in name)\n"
        "report = {'status': status[name], 'socket': fails(lambda: socket.socket()),\n"
        "          'read': fails(lambda: os.open('/etc/passwd', os.O_RDONLY)),\n"
        "          'fork': fails(os.fork), 'kill': fails(lambda: os.kill(os.getppid(), 0)),\n"
        "          'run': fails(lambda: os.execv('/bin/true', ['true'])),\n"
        "          'sum': sum(len(str(i)) for i in range(100000)), 'big': len(bytearray(50_000_000))}"
    )
    if report["status"] != "active":
        pytest.skip(f"no seccomp here: {report['status']}")
    assert report.pop("sum") == 488890
    assert report.pop("big") == 50_000_000
    assert {name: value for name, value in report.items() if name != "status"} == dict.fromkeys(
        ("socket", "read", "fork", "kill", "run"), "EPERM"
    )


@linux_only
def test_executable_memory_and_the_limits_of_others_stay_out_of_reach():
    report = in_a_process(
        "import mmap, resource\n"
        "isolation.confine_program(1 << 40, 100, os.getppid())\n"
        "protection = mmap.PROT_READ | mmap.PROT_WRITE\n"
        "report = {'plain': fails(lambda: mmap.mmap(-1, 4096, prot=protection)),\n"
        "          'executable': fails(lambda: mmap.mmap(-1, 4096, prot=protection | mmap.PROT_EXEC)),\n"
        "          'own': fails(lambda: resource.prlimit(0, resource.RLIMIT_CPU)),\n"
        "          'other': fails(lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CPU))}"
    )
    assert report == {"plain": "allowed", "executable": "EPERM", "own": "allowed", "other": "EPERM"}


@linux_only
def test_memory_is_limited_with_a_reserve_for_the_report():
    report = in_a_process(
        "isolation.confine_program(300 << 20, 100, os.getppid())\n"
        "kept = []\n"
        "try:\n"
        "    while True:\n"
        "        kept.append(bytearray(1 << 20))\n"
        "except MemoryError:\n"
        "    isolation.grant_reserve()\n"
        "report = {'kept': len(kept), 'more': len(bytearray(8 << 20))}"
    )
    assert 100 < report["kept"] < 300
    assert report["more"] == 8 << 20


@linux_only
def test_a_wall_that_cannot_stand_is_named_with_the_reason():
    report = in_a_process(
        "isolation._FILTER = None\n"
        "isolation._LANDLOCK_CREATE_RULESET = 100_000\n"
        "report = isolation.confine_worker() | isolation.confine_program(1 << 40, 100, os.getppid())"
    )
    inactive = {name: status for name, status in report.items() if status.startswith("inactive")}
    assert {name.split()[0] for name in inactive} == {"landlock", "seccomp"}
    assert "kernel" in next(status for name, status in inactive.items() if "landlock" in name)


@linux_only
def test_a_child_whose_parent_is_already_gone_does_not_stay():
    script = f"{PRELUDE}isolation.confine_program(1 << 40, 100, parent=1 << 30)\nprint('still here')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == b""
