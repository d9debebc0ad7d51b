"""Numbers that decide stand in `settings.py`; beside their code stand sizes of computations, which this file lists."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ANALYSE = Path(__file__).parents[2] / "src/fablint/analyse"
MOST_NUMBERS = 90  # in settings.py

# Module constants with numbers that decide nothing, by the reason.
COMPUTATIONS = {
    "limits of memory and time": {
        "explain/lateness/adaptive_links.py": "MOST_PARTS",
        "damage.py": "_AT_ONCE _SENDERS",
        "explain/shared_ends.py": "MOST_LISTED MOST_STEPS",
        "findings/missing/missing_cells.py": "FEW_CELLS",
        "findings/paths/pair_moments.py": "MOST_COMPARED",
        "null_model/path_levels.py": "MOST_SWITCHES",
        "observations/mean_ratios.py": "MOST_CELLS MOST_MATRIX_RANKS",
        "observations/message_paths.py": "MOST_UNKNOWN",
        "observations/samples.py": "MOST_MATRIX_RANKS MOST_MEDIAN_CELLS MOST_STAR_RANKS",
        "observations/segments.py": "MOST_MATRIX_RANKS",
        "other_questions/topology_inference.py": "MOST_HOSTS",
    },
    "sizes of blocks and samples": {
        "explain/follow_ups.py": "TRIES",
        "explain/losses/named_losses.py": "SAMPLES MOST_PAIRS HALVINGS LARGEST",
        "explain/lateness/late_messages.py": "BLOCK POOL",
        "explain/outlier_pairs.py": "SAMPLE_CELLS TAIL_SHARE TAIL_CELLS",
        "explain/paths/path_modes.py": "SHUFFLES",
        "null_model/host_spread.py": "MOST_EFFECTS",
        "null_model/median_polish.py": "SEGMENT_CELLS",
        "null_model/path_levels.py": "CELLS_EACH MOST_CELLS",
        "observations/message_paths.py": "SORTED_VALUES",
        "observations/mean_ratios.py": "BLOCK_CELLS",
        "observations/pair_matrix.py": "BLOCK_CELLS TILE SAMPLE_CELLS",
        "observations/time_correlation.py": "MOST_MEASUREMENTS MOST_OF_SET NEAREST WINDOW",
        "other_questions/miswiring.py": "FAR_COLUMNS",
        "other_questions/topology_inference.py": "SQUARES",
    },
    "iterations, and how far a search goes": {
        "explain/lateness/adaptive_links.py": "SHARES_LATE",
        "explain/explanation.py": "AHEAD MOST_STEPS MOST_REPLACED",
        "explain/pair_circumstances.py": "NEAREST",
        "findings/late_components.py": "BOUNDS",
        "findings/retransmissions.py": "BOUNDS",
        "null_model/host_spread.py": "SCALES",
        "null_model/median_polish.py": "PASSES",
        "null_model/modes.py": "CANDIDATES",
        "null_model/offsets/allocation_levels.py": "PASSES",
        "null_model/path_levels.py": "PASSES",
        "observations/segments.py": "ROUNDS",
        "other_questions/miswiring.py": "PASSES",
        "other_questions/topology_inference.py": "DEPTH MOST_CUTS PASSES",
    },
    "bins of values, of time and of evidence": {
        "explain/evidence.py": "UNITS_PER_NAT LEVELS",
        "null_model/comparison_groups.py": "MOST_CODES",
        "null_model/drift.py": "MOST_WINDOWS",
        "null_model/host_spread.py": "FREEDOMS _LOG_RANGE",
        "null_model/loads.py": "EXPECTED _BETWEEN STEPS",
        "null_model/timing.py": "MOST_WINDOWS",
        "observations/resolution.py": "MIDDLE_HALF LEVELS_OF_STEP",
        "other_questions/miswiring.py": "MOST_BINS",
        "other_questions/topology_inference.py": "BINS",
    },
    "rounding and the accuracy of numbers": {
        "candidates/exposures.py": "SAME",
        "findings/alpha_beta.py": "PRECISION",
        "explain/shares/share_evidence.py": "TINY",
        "null_model/loads.py": "ROUNDING",
        "observations/resolution.py": "FINEST_STEP ONE_STEP SAME",
        "observations/time_correlation.py": "FINEST",
    },
    "constants of mathematics": {
        "changes/host_changes.py": "ROUNDED_MEDIANS",
        "findings/alpha_beta.py": "BENDS_AT",
        "explain/shares/slow_shares.py": "UNIFORM",
        "null_model/host_spread.py": "FEW_PARTS",
        "null_model/path_levels.py": "GAUSSIAN_DIFFERENCE",
        "observations/resolution.py": "ROUNDING_NOISE",
        "observations/robust_stats.py": "MEDIAN_ERROR MAD_EFFICIENCY GAUSSIAN_MAD",
    },
    "codes, tables of counters and lengths of texts": {
        "candidates/crossed_components.py": "SIDES",
        "decide.py": "EXIT_CODES",
        "explain/shares/share_detections.py": "SIDES",
        "findings/paths/slow_pairs.py": "MOST_NAMED",
        "null_model/recorded_facts.py": "MOST_VALUES",
        "observations/counter_steps.py": "MEANS",
        "other_questions/missed_thresholds.py": "MOST_ROUTES",
    },
    "likelihoods of symptoms, which order what to look at": {
        "other_questions/root_cause.py": "PRIOR SYMPTOMS BESIDE",
    },
}


def numbers_in(node: ast.AST) -> int:
    """How many numbers a piece of code spells out."""
    constants = (child.value for child in ast.walk(node) if isinstance(child, ast.Constant))
    return sum(isinstance(value, int | float) and not isinstance(value, bool) for value in constants)


def assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Names and values of the assignments of a module or class."""
    for node in body:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            yield ast.unparse(node.target), node.value
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                yield from ((ast.unparse(name), node.value) for name in names)


def constants_with_numbers(source: str) -> set[str]:
    """Names of constants of a module, of its classes too, whose value has a number in it."""
    module = ast.parse(source)
    bodies = [module.body, *(node.body for node in ast.walk(module) if isinstance(node, ast.ClassDef))]
    pairs = [pair for body in bodies for pair in assigned(body)]
    return {name for name, value in pairs if numbers_in(value) and name.lstrip("_").isupper()}


def listed(path: str) -> set[str]:
    """The constants of a file that are sizes of computations."""
    return {name for files in COMPUTATIONS.values() for name in files.get(path, "").split()}


MODULES = sorted({path.relative_to(ANALYSE).as_posix() for path in ANALYSE.rglob("*.py")} - {"settings.py"})


@pytest.mark.parametrize("path", MODULES)
def test_numbers_that_decide_stand_in_settings(path: str) -> None:
    assert constants_with_numbers((ANALYSE / path).read_text(encoding="utf-8")) == listed(path)


def test_listed_files_exist() -> None:
    assert {path for files in COMPUTATIONS.values() for path in files} <= set(MODULES)


def test_settings_has_few_numbers() -> None:
    module = ast.parse((ANALYSE / "settings.py").read_text(encoding="utf-8"))
    bodies = [module.body, *(node.body for node in module.body if isinstance(node, ast.ClassDef))]
    values = {id(value): value for body in bodies for _, value in assigned(body)}.values()
    assert sum(map(numbers_in, values)) <= MOST_NUMBERS


@pytest.mark.parametrize(
    "line",
    [
        "LEAST = 0.3",
        "_MOST: int = 2 * 6",
        "FEW, MANY = 2, 5",
        "class Table:\n    BAR = 4.0",
        "NEARLY = np.log(20)",
    ],
)
def test_a_constant_with_a_number_is_recognised(line: str) -> None:
    assert constants_with_numbers(line)


def test_constants_without_numbers_are_no_numbers() -> None:
    assert (
        constants_with_numbers("from settings import HALF\nKINDS = ('host', 'nic')\nIS_ON = True\ncount = 3") == set()
    )
