"""Kernel walls around a worker: limits, an unprivileged user, Landlock and seccomp, where they exist.

Each function puts up what it can and says, per protection, "active" or why not. Everything is plain
`prctl` and system calls: no library has to be loaded into a worker.
"""

from __future__ import annotations

import _socket
import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import _exit, getppid
from resource import RLIMIT_AS, RLIMIT_CPU, RLIMIT_NOFILE, RLIMIT_NPROC, setrlimit
from typing import ClassVar

from stepbox.wire import to_json

ACTIVE = "active"
SECCOMP = "seccomp (system calls)"
LANDLOCK = "landlock (files, TCP, signals)"
NOBODY = 65534
OPEN_FILES = 256  # of a worker: a sheet per program of a request, and a few; a program's process has none

_PR_SET_PDEATHSIG, _PR_GET_SECCOMP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 21, 22, 38
_SECCOMP_MODE_FILTER = 2
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446  # the same number on every architecture
_LANDLOCK_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # by ABI: how many low bits exist


@dataclass(frozen=True, slots=True)
class _Machine:
    """Numbers of the system calls an interpreter needs to compute: no file, socket, process or signal."""

    audit: int
    free: tuple[int, ...]
    memory: tuple[int, ...]  # map and protect: not executable
    limits: int  # of oneself


_MACHINES = {
    # write (to nothing: no descriptor is open), munmap, brk, sigaction, sigprocmask, sigreturn, sched_yield,
    # mremap, madvise, setitimer, getpid, exit, gettimeofday, getrusage, sigaltstack, gettid, futex,
    # restart_syscall, clock_gettime, exit_group, getrandom, rseq; then mmap, mprotect; prlimit.
    "x86_64": _Machine(
        audit=0xC000003E,
        free=(1, 11, 12, 13, 14, 15, 24, 25, 28, 38, 39, 60, 96, 98, 131, 186, 202, 219, 228, 231, 318, 334),
        memory=(9, 10),
        limits=302,
    ),
    "aarch64": _Machine(
        audit=0xC00000B7,
        free=(
            *(64, 93, 94, 98, 103, 113, 124, 128, 132, 134, 135, 139),
            *(165, 169, 172, 178, 214, 215, 216, 233, 278, 293),
        ),
        memory=(222, 226),
        limits=261,
    ),
}


class Unavailable(Exception):
    """A protection this kernel, container or platform does not offer; the message says which and why."""


def confine_worker() -> dict[str, str]:
    """Walls for a worker process that still has to start children: applied once, after its imports."""
    return {
        "unprivileged user": _attempt(_drop_privileges),
        "no new privileges": _attempt(_prctl, _PR_SET_NO_NEW_PRIVS, 1),
        LANDLOCK: _attempt(_forbid_files),
        "limits (files, core dumps)": _attempt(_limit_files),
    }


def confine_program(memory_bytes: int, cpu_seconds: int, parent: int) -> dict[str, str]:
    """Walls for the child that runs a program: everything above is inherited, this comes on top.

    It happens once per program, and every page of memory that is written to is copied: little is done here.
    """
    return {
        "dies with its parent": _attempt(_die_with, parent),
        "limits (memory, processor time, processes)": _attempt(_limit_resources, memory_bytes, cpu_seconds),
        SECCOMP: _attempt(_forbid_system_calls),
    }


def warm_up_walls() -> None:
    """Call what `confine_program` calls, to no effect."""
    _attempt(_prctl, _PR_GET_SECCOMP, 0)
    setrlimit(RLIMIT_CPU, resource.getrlimit(RLIMIT_CPU))


def try_everything(protections: Mapping[str, str], zygote: int) -> None:
    """Run against a program's walls from inside: write, to descriptor 1, what is refused in fact.

    A second line follows if this process cannot even become another.
    """
    attempts: dict[str, Callable[[], object]] = {
        "read a file": lambda: os.close(os.open("/", os.O_RDONLY)),
        "write a file": lambda: os.close(os.open(os.devnull, os.O_WRONLY)),
        "open a socket": lambda: _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).close(),
        "start a process": lambda: os.fork() or os._exit(0),
        "signal a process": lambda: os.kill(zygote, 0),
    }
    refused = {name: _is_refused(attempt) for name, attempt in attempts.items()}
    os.write(1, to_json({"protections": protections, "refused": refused}).encode() + b"\n")
    if _is_refused(lambda: os.execv("/bin/sh", ["sh", "-c", ":"])):
        os.write(1, b"still here")


def _is_refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return True
    return False


def grant_reserve() -> None:
    """Lift the soft limit on memory to the hard one, so that a full process can still report."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _attempt(protect: Callable[..., None], *arguments: int) -> str:
    try:
        protect(*arguments)
    except (Unavailable, OSError, ValueError) as error:
        return f"inactive: {error}"
    return ACTIVE


def _drop_privileges() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def _die_with(parent: int) -> None:
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if getppid() != parent:  # it was gone before the signal was asked for
        _exit(1)


def _limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))


def _limit_resources(memory_bytes: int, cpu_seconds: int) -> None:
    reserve = 32 << 20  # for `grant_reserve`
    setrlimit(RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    setrlimit(RLIMIT_NPROC, (0, 0))  # would not bind root, which has become nobody by now
    setrlimit(RLIMIT_NOFILE, (0, 0))
    setrlimit(RLIMIT_AS, (memory_bytes, memory_bytes + reserve))


def _forbid_files() -> None:
    """A Landlock domain without a single rule: no path can be opened, no TCP port reached."""
    abi = _landlock_abi()
    file_rights = (1 << _LANDLOCK_FILE_RIGHTS.get(abi, 16)) - 1
    network_rights = 0b11 if abi >= 4 else 0
    scopes = 0b11 if abi >= 6 else 0
    # What an older kernel does not know it refuses, so it is told no more than it knows.
    sizes = {1: 8, 2: 8, 3: 8, 4: 16, 5: 16}
    attributes = struct.pack("=QQQ", file_rights, network_rights, scopes)[: sizes.get(abi, 24)]
    ruleset = _system_call(_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        _system_call(_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _landlock_abi() -> int:
    try:
        return _system_call(_LANDLOCK_CREATE_RULESET, None, 0, 1)
    except OSError as error:
        raise Unavailable(f"the kernel has no Landlock or it is switched off ({error.strerror})") from None


def _forbid_system_calls() -> None:
    if _FILTER is None:
        raise Unavailable(f"no table of system calls for {os.uname().machine}")
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, _FILTER_ADDRESS)


class _Program(ctypes.Structure):
    """The kernel's `struct sock_fprog`: how many instructions, and where they are."""

    _fields_: ClassVar = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def _seccomp_program(machine: str) -> _Program | None:
    calls = _MACHINES.get(machine)
    if calls is None:
        return None
    code = _seccomp_filter(calls)
    return _Program(len(code) // 8, code)


def _seccomp_filter(calls: _Machine) -> bytes:
    """A BPF program that allows the listed calls and refuses the rest with EPERM."""
    load, equal, any_bit, give = 0x20, 0x15, 0x45, 0x06
    allow, refuse, kill = 0x7FFF0000, 0x00050001, 0x80000000
    # First the architecture (at 4): under another one the numbers mean other calls. Then the call (at 0).
    code = [(load, 0, 0, 4), (equal, 1, 0, calls.audit), (give, 0, 0, kill), (load, 0, 0, 0)]
    for number in calls.free:
        code += [(equal, 0, 1, number), (give, 0, 0, allow)]
    for number in calls.memory:  # third argument: 4 is executable
        code += [(equal, 0, 4, number), (load, 0, 0, 32), (any_bit, 0, 1, 4)]
        code += [(give, 0, 0, refuse), (give, 0, 0, allow)]
    code += [(equal, 0, 4, calls.limits), (load, 0, 0, 16), (equal, 1, 0, 0)]  # first argument: the process
    code += [(give, 0, 0, refuse), (give, 0, 0, allow)]
    code += [(give, 0, 0, refuse)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _prctl(option: int, first: int, second: int = 0) -> None:
    if not _IS_LINUX:
        raise Unavailable(f"{sys.platform} has no prctl")
    if _PRCTL(option, first, second, 0, 0) != 0:
        raise _last_error()


def _system_call(number: int, *arguments: object) -> int:
    if not _IS_LINUX:
        raise Unavailable(f"only Linux has Landlock, this is {sys.platform}")
    words = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in arguments]
    result: int = _LIBC.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise _last_error()
    return result


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


_IS_LINUX = sys.platform.startswith("linux")
_LIBC = ctypes.CDLL(None, use_errno=True)
_SIGKILL = int(signal.SIGKILL)  # a plain number: a child has less to look up
if _IS_LINUX:
    _PRCTL = _LIBC.prctl
    _PRCTL.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
_FILTER = _seccomp_program(os.uname().machine)
_FILTER_ADDRESS = 0 if _FILTER is None else ctypes.addressof(_FILTER)
