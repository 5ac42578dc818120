"""What `partway doctor` says of the room for general programs: which walls stand, and what they hold."""

from __future__ import annotations

import time

import stepbox
from partway.cli.doctor import Sandbox
from partway.sandbox.room import weak_is_allowed
from stepbox.attacks import withstood
from stepbox.walls import LANDLOCK, SECCOMP

WEAK = f"general programs are not run here unless you say --allow-weak-sandbox: {stepbox.RISK}"


def examine() -> Sandbox:
    """Start a worker, let it run against its walls, and attack it."""
    start = time.perf_counter()  # every first program of a process waits so long
    try:
        report = stepbox.inspect()
    except stepbox.BoxError as error:
        return Sandbox(f"unusable: {error}")
    seconds = round(time.perf_counter() - start, 3)
    try:
        attacks = withstood(allow_weak=weak_is_allowed())
    except stepbox.WeakBox:  # refused here for its walls, which are shown
        attacks = {}
    strength = _strength(report, attacks)
    return Sandbox(strength, dict(report.protections), dict(report.refused), attacks, seconds)


def _strength(report: stepbox.BoxReport, attacks: dict[str, bool]) -> str:
    # What was tried asks whether the kernel alone would hold, past the screen of the code; an attack takes
    # the whole way, and one that gets through is a hole of ours.
    allowed = [attempt for attempt, refused in report.refused.items() if not refused]
    inactive = [name for name, state in report.protections.items() if state.startswith("inactive")]
    if not all(attacks.values()):
        through = ", ".join(name for name, held in attacks.items() if not held)
        return f"broken: a program managed to {through}; please report this"
    if allowed:
        return f"weak: past the screen of its code, a program could {', '.join(allowed)}; {WEAK}"
    if {SECCOMP, LANDLOCK} & set(inactive):
        return f"weak: a hole in one wall would do, without {', '.join(inactive)}; {WEAK}"
    if inactive:
        return f"good: every attempt was refused, though without {', '.join(inactive)}"
    return "strong: every wall stands and every attempt was refused"
