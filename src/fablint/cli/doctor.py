"""The verb `doctor`: is this machine ready to measure?"""

from __future__ import annotations

from dataclasses import asdict

from fablint.cli.session import Session, verb


@verb(short_help="Is this machine ready to measure?")
def doctor(session: Session) -> int:
    """Examine this machine: is everything there that fablint needs, and if not, how to repair it.

    Exits with 4 when something that a measurement needs is missing.

    \b
    Example:
      fablint doctor
    """
    from fablint.measure import examine

    checks = examine(session.machine())
    lines = [f"{'ok' if check.ok else 'warn':<5}{check.name:<14}{check.found}" for check in checks]
    lines = [line + (f": {check.mend}" if check.mend else "") for line, check in zip(lines, checks, strict=True)]
    code = 4 if any(not check.ok and check.needed for check in checks) else 0
    facts = {"format": 1, "exit_code": code, "checks": [asdict(check) for check in checks]}
    session.result("\n".join(lines), facts)
    return code
