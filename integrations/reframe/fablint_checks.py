"""ReFrame tests of a fabric: preflight, check, latency and bandwidth.

    reframe -C site_config.py -c fablint_checks.py -r
    reframe -C site_config.py -c fablint_checks.py -r -n FablintCheck -S FablintCheck.suite=acceptance

fablint starts the ranks itself, with the launcher of the MPI library, inside the job that ReFrame submits. Figures are
read from the JSON output. References of a system are set in a class that inherits one of these.
"""

import json
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.backends import getlauncher


class FablintTest(rfm.RunOnlyRegressionTest):
    """What the tests share: one program, started without a launcher, with JSON on stdout."""

    executable = "fablint"
    nodes = variable(int, value=2)
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    time_limit = "30m"
    verb = ""

    @run_after("init")
    def set_job(self):
        self.num_tasks = self.nodes
        self.num_tasks_per_node = 1

    @run_before("run")
    def set_command(self):
        self.job.launcher = getlauncher("local")()
        self.executable_opts = [self.verb, "-q", "--json", *self.options()]

    def options(self):
        """Options of the verb."""
        return []

    @deferrable
    def output(self):
        """Return the object that fablint printed."""
        text = (Path(self.stagedir) / self.stdout.evaluate()).read_text()
        try:
            return json.loads(text[text.index("{") :])
        except ValueError as error:
            raise sn.SanityError(f"no JSON output: see {self.stderr.evaluate()}") from error

    @sanity_function
    def is_passed(self):
        return sn.assert_eq(self.output()["exit_code"], 0, "exit code {0}, not {1}: see the findings in the output")

    @deferrable
    def count(self, state):
        """Return the number of findings with a state."""
        return sum(finding["state"] == state for finding in self.output().evaluate()["findings"])


@rfm.simple_test
class FablintPreflight(FablintTest):
    """Every host of the job is fit to be measured."""

    verb = "preflight"
    level = variable(str, value="quick")

    def options(self):
        return ["--level", self.level]

    @performance_function("hosts")
    def unfit(self):
        return len(self.output().evaluate()["unfit"])

    @performance_function("findings")
    def warnings(self):
        return self.count("SUSPECT")


@rfm.simple_test
class FablintCheck(FablintTest):
    """The fabric has no fault; `ranks` above 0 measures this machine only, without a fabric."""

    verb = "check"
    suite = variable(str, value="quick")
    ranks = variable(int, value=0)

    def options(self):
        where = ["--local", str(self.ranks)] if self.ranks else ["--suite", self.suite]
        return [*where, "-o", "check.run"]

    @run_before("run")
    def keep_report(self):
        self.keep_files = ["check.run/report"]

    @performance_function("findings")
    def faults(self):
        return self.count("FAULT")

    @performance_function("findings")
    def suspects(self):
        return self.count("SUSPECT")

    @performance_function("%")
    def pairs_measured(self):
        coverage = self.output().evaluate()["coverage"]
        return 100 * coverage["pairs_measured"] / coverage["pairs_planned"]


class FablintBenchmark(FablintTest):
    """A benchmark by its name; the figure of each size is a performance variable."""

    verb = "bench"
    sizes = variable(str, value="8")

    def options(self):
        return [self.benchmark, "-n", str(self.num_tasks), "--sizes", self.sizes]

    @sanity_function
    def is_passed(self):
        return sn.assert_gt(len(self.output().evaluate()["sizes"]), 0, "the table has no line")

    @run_before("performance")
    def set_figures(self):
        table = self.output().evaluate()
        for line in table["sizes"]:
            figure = sn.make_performance_function(sn.defer(line["figure"]), table["unit"])
            self.perf_variables[f"{self.benchmark}_{line['size']}B"] = figure


@rfm.simple_test
class FablintLatency(FablintBenchmark):
    """Half a round trip between the first two hosts."""

    benchmark = "osu_latency"


@rfm.simple_test
class FablintBandwidth(FablintBenchmark):
    """One-way stream between the first two hosts."""

    benchmark = "osu_bw"
    sizes = "1M"
