"""Runs inside gdb: counts the instructions of a program around its calls of the fake libibverbs.

Prints a line `instructions A B`: A between the poll that returned a completion and the next call that sends, B of a
whole message; both without those of the library. Medians of MESSAGES messages, after the first SKIP ones.
"""

import os
import statistics

import gdb

MESSAGES = 40


def register(name: str) -> int:
    return int(gdb.parse_and_eval(f"(long)${name}"))


def leave_function() -> int:
    """Execute the function of the library to its end; return the int that it returns."""
    gdb.execute("finish", to_string=True)
    return int(gdb.parse_and_eval("(int)$eax"))


def main() -> None:
    for setting in ("pagination off", "confirm off", "breakpoint pending on", "print inferior-events off"):
        gdb.execute(f"set {setting}")
    first_send = gdb.Breakpoint("fake_verbs_post_send")
    first_send.ignore_count = int(os.environ["SKIP"])
    gdb.execute("run")
    first_send.enabled = False
    poll, send, receive = (
        int(gdb.parse_and_eval(f"(long)&fake_verbs_{name}")) for name in ("poll", "post_send", "post_receive")
    )
    leave_function()
    answers: list[int] = []
    messages: list[int] = []
    whole, answer = 0, None
    while len(messages) < MESSAGES:
        place = register("pc")
        if place == send:
            messages.append(whole)
            if answer is not None:
                answers.append(answer)
            whole, answer = 0, None
            leave_function()
        elif place == poll:
            answer = 0 if leave_function() > 0 else answer
        elif place == receive:
            leave_function()
        else:
            gdb.execute("stepi", to_string=True)
            whole += 1
            answer = None if answer is None else answer + 1
    print(f"instructions {statistics.median(answers):.0f} {statistics.median(messages):.0f}")
    gdb.execute("kill")


main()
