"""How each command of the documentation is run here: as it is written, or in place of a cluster with a stand-in."""

from __future__ import annotations

import re
from typing import NamedTuple


class Rule(NamedTuple):
    """What replaces part of a command here, and why; without a replacement the line is not run."""

    pattern: str
    replacement: str | None
    reason: str


# In this order; each applies to what the ones before it have made.
RULES = (
    Rule(r"^\$ ", "", "the prompt"),
    Rule(r"^pip install .*|^make (demo|test|sbom)\b.*", None, "set-up of an environment: .ci/run does it"),
    Rule(r"^make -C engine .*|^cmake .*", None, "compiles the engine again; engine/tests/run.sh runs the same make"),
    Rule(r"^python docs/decision_figures.py .*", None, "writes into the checkout; test_pictures.py runs it"),
    Rule(
        r"^mpiexec -n \d fablint-engine",
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpiexec -n 2 $(fablint engine path)",
        "root, two CPUs, no engine on the PATH",
    ),
    Rule(
        r"^fablint-engine --rendezvous n1:23456 (.* --rank 0 .*)",
        r"$(fablint engine path) --rendezvous 127.0.0.1:$PORT \1 --sizes 8 &",
        "one host",
    ),
    Rule(
        r"^fablint-engine --rendezvous n1:23456 (.* --rank 1)",
        r"$(fablint engine path) --rendezvous 127.0.0.1:$PORT \1 && wait $!",
        "one host",
    ),
    Rule(r"^git clone URL fablint && cd fablint", "git clone -q $CHECKOUT fablint", "no public address is known"),
    Rule(r"^man (fablint-(?:topology|site|run))$", r"test -s $CHECKOUT/share/man/man5/\1.5", "man is not everywhere"),
    Rule(r"^man (\S+)$", r"test -s $CHECKOUT/share/man/man1/\1.1", "man is not everywhere"),
    Rule(r"^sbatch check-\d\.job$", None, "no Slurm cluster"),
    Rule(r"^fablint (analyse|report) check-1\.run .*", None, "no jobs: test_joined_runs.py joins runs"),
    Rule(r"^scontrol .*", None, "output of fablint act; a Slurm cluster"),
    Rule(r"^\*/10 [* ]+root +", "", "a line of crontab"),
    Rule(r"/var/lib/node_exporter/", "", "folder of a service"),
    Rule(r"/opt/openmpi/bin/mpicxx", "$(command -v mpicxx)", "path of a site"),
    Rule(r"\| (mail|sendmail) .*", "| cat", "no mail"),
    Rule(r"^less ", "cat ", "no terminal"),
    Rule(r" \.\.\.$", "", "options of the reader"),
    Rule(r"^salloc -k -N 64 fablint check", "fablint check -w 'n[001-064]'", "no Slurm cluster"),
    Rule(r"^salloc -k -N 64 ", "", "no Slurm cluster"),
    Rule(r"(fablint (?:preflight|discover)\b.*?) (?:-w \S+|--hostfile \S+)(?: -x \S+)?", r"\1", "this host only"),
    Rule(
        r"^fablint discover -o (\S+)$",
        r"fablint discover --from n001=$FIXTURES/discover/lldpcli-json0-two-ports.json -o \1",
        "no allocation",
    ),
    Rule(r"^fablint check (-o \S+\.run)$", r"fablint simulate --host-count 16 \1", "no cluster"),
    Rule(r"^fablint check (?!.*(--local|-w|--hosts))", "fablint check -w 'n[001-016]' ", "no allocation"),
    Rule(r"^fablint check (?!.*(--local|--submit))(.*)", r"fablint check \2 --submit --dry-run", "no cluster"),
    Rule(r"^fablint check (.*--submit)(?!.* --dry-run)", r"fablint check \1 --dry-run", "no scheduler that runs jobs"),
    Rule(
        r"--servers \S+ --clients \S+ --servers-nranks 2|--clients \S+(?= --verbose)", "-n 4 --nservers 2", "no hosts"
    ),
    Rule(r"^fablint bench ib_\w+ .*", None, "no InfiniBand device; the test of Soft-RoCE measures verbs"),
    Rule(r" -d (cuda|rocm)\b", "", "no GPU"),
    Rule(r"(bench all_reduce_perf) -b 8 -e 128M -f 2 -g 8 ", r"\1 -b 8 -e 1M -f 2 -g 2 --transport mpi ", "no GPU"),
    Rule(r"-m 4194304 -x 10 -i 1000", "-m 64K -x 1 -i 2", "time of the tests"),
    Rule(r"mpiGraph 1048576 10 10", "mpiGraph 4096 2 2", "time of the tests"),
    Rule(r" --hosts n001,n003", "", "no hosts"),
    Rule(r"^(fablint bench .*?)--hosts (?:'[^']*'|\S+)(?: --ppn 20)?", r"\1-n 4", "no hosts"),
    Rule(r"-n 2048 --ranks-per-nic 4", "-n 4", "two CPUs"),
    Rule(r"^(fablint (?:bench|measure)\b.*)-n (?:8|16)", r"\1-n 4", "two CPUs"),
    Rule(r"--victims 4", "--victims 1", "two CPUs"),
    Rule(
        r"^(fablint check --local 4)( -o mine.run)$",
        r"python $INTERRUPTED \1 --budget 4s\2",
        "a user presses Ctrl-C; time of the tests",
    ),
    Rule(r"--local 8", "--local 4", "two CPUs"),
    Rule(r"^(fablint check --local(?!.*--budget).*)$", r"\1 --budget 2s", "time of the tests"),
    Rule(r"^(fablint bench osu_(?!.* (?:-i|--list|--help|--adaptive|--niters|--sizes)\b).*)$", r"\1 -i 2 -x 0", "time"),
    Rule(r"--host-count 4096", "--host-count 1024", "time of the tests"),
    Rule(r"--shape 33x16x8", r"\g<0> --rounds 4", "time of the tests"),
    Rule(r"^(fablint bench congestion.*)$", r"\1 -i 10", "time of the tests"),
    Rule(r"--niters 1024", "--niters 4", "time of the tests"),
    Rule(r"^(fablint bench net_?san\w*(?!.*--niters).*)$", r"\1 --niters 4", "time of the tests"),
    Rule(r"--repeats 16 --reconnect", r"--sizes 8 --samples 10 \g<0>", "time of the tests"),
    Rule(
        r"'osu_bw --pattern all-pairs --validate'",
        "'osu_bw --pattern all-pairs --validate --sizes 8,64K --samples 4'",
        "time of the tests",
    ),
    Rule(r"--num-messages 100\b", "--num-messages 4", "time of the tests"),
    Rule(
        r"^(fablint bench linktest(?!.*(?:--num-messages|--mode)).*)$",
        r"\1 --num-messages 2 --size-messages 1048576",
        "time of the tests",
    ),
    Rule(r"-m 1K:1M -i 1000,100 -x 10", "-m 1K:64K -i 10,2 -x 1", "time of the tests"),
    Rule(r"-b multiple", r"\g<0> -m 64K", "time of the tests"),
    Rule(r"(bisec_bw .*)-i 100", r"\1-i 10", "time of the tests"),
    Rule(r"^(fablint bench latency_test.*)$", r"\1 -i 20,2 -x 1", "time of the tests"),
    Rule(r"\bn017\b", "h07", "host of the simulated run"),
    Rule(r"^fablint history add fablint-\S+", r"\g<0> healthy-*.run", "a baseline takes three"),
)


class RunLine(NamedTuple):
    """What is run for a line of a page (empty: nothing), and the rules that made it."""

    command: str
    rules: tuple[Rule, ...] = ()


def as_run_here(line: str) -> RunLine:
    command = re.sub(r"\s+# .*$", "", line).strip()
    if command.startswith("#"):
        return RunLine("")
    used = []
    for rule in RULES:
        if not re.search(rule.pattern, command):
            continue
        used.append(rule)
        if rule.replacement is None:
            return RunLine("", tuple(used))
        command = re.sub(rule.pattern, rule.replacement, command)
    return RunLine(command, tuple(used))
