"""The verb `doctor`: whether this machine is ready to measure."""

from __future__ import annotations

from dataclasses import asdict

from fablint.cli.session import Session, verb
from fablint.errors import PreflightError


@verb(short_help="Check whether this machine is ready to measure.")
def doctor(session: Session) -> int:
    """Check that everything that fablint needs is present on this machine, and print remedies.

    A line for each part: ok; FAIL, which stops every measurement; warn, which does not work; - for what this machine
    does not have and need not have. The last line says what this machine can do. Exits with 4 when something that a
    measurement needs is missing.

    \b
    Example:
      fablint doctor
    """
    from fablint.measure.doctor import examine, summary

    checks = []
    for check in examine(session.machine()):
        checks.append(check)
        if not session.json:
            remedy = f": {check.remedy}" if check.remedy else ""
            session.print(f"{check.mark:<5}{check.name:<14}{check.state}{remedy}")
    code = PreflightError.exit_code if any(check.mark == "FAIL" for check in checks) else 0
    documents = [{**asdict(check), "mark": check.mark} for check in checks]
    facts = {"exit_code": code, "summary": summary(checks), "checks": documents}
    session.result(summary(checks), facts)
    return code
