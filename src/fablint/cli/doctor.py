"""The verb `doctor`: whether this machine is ready to measure."""

from __future__ import annotations

from dataclasses import asdict

from fablint.cli.session import Session, verb


@verb(short_help="Check whether this machine is ready to measure.")
def doctor(session: Session) -> int:
    """Check that everything that fablint needs is present on this machine, and print remedies.

    Exits with 4 when something that a measurement needs is missing.

    \b
    Example:
      fablint doctor
    """
    from fablint.measure import examine

    checks = examine(session.machine())
    lines = [f"{'ok' if check.ok else 'warn':<5}{check.name:<14}{check.state}" for check in checks]
    lines = [line + (f": {check.remedy}" if check.remedy else "") for line, check in zip(lines, checks, strict=True)]
    code = 4 if any(not check.ok and check.needed for check in checks) else 0
    facts = {"format": 1, "exit_code": code, "checks": [asdict(check) for check in checks]}
    session.result("\n".join(lines), facts)
    return code
