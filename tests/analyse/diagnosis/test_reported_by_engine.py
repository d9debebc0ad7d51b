"""What the engine saw by itself: damaged payloads and lost ranks."""

from analyse_cases import attributed, named, row_attributed

from fablint.analyse import diagnose
from fablint.analyse.other_questions.engine_findings import lost
from fablint.model import State
from fablint.simulate import Noise, full_mesh, simulate
from fablint.text.evidence_sentences import sentences
from finding_cases import group, note_texts
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

MESH = full_mesh(4, 4)
RUN = simulate(MESH, noise=Noise(scale=0.01, spike_share=0))


def damage(src: int, dst: int) -> dict[str, int]:
    return {"src": src, "dst": dst, "size": 8, "message": 3, "offset": 5}


def test_a_damaged_payload_is_a_fault_of_the_route() -> None:
    diagnosis = diagnose(row_attributed(RUN, "latency", corrupt=[damage(2, 9), damage(2, 9)]), MESH.topology)
    assert named(diagnosis) == {("route", "h02>h09", None)}
    finding = diagnosis.verdict.findings[0]
    assert sentences(finding.evidence) == PINNED["2 damaged payloads; first"]
    assert group(finding) == ("host h02", "host h09")
    assert diagnosis.verdict.exit_code == 1


def test_damage_with_many_partners_is_the_host_that_they_share() -> None:
    run = row_attributed(RUN, "latency", corrupt=[damage(2, 9), damage(2, 10), damage(2, 11), damage(5, 6)])
    assert named(diagnose(run, MESH.topology)) == {("host", "h02", "tx"), ("route", "h05>h06", None)}
    run = row_attributed(RUN, "latency", corrupt=[damage(9, 2), damage(10, 2), damage(11, 2)])
    assert named(diagnose(run, MESH.topology)) == {("host", "h02", "rx")}


def test_a_lost_rank_is_a_suspect_host_and_an_incomplete_verdict() -> None:
    entry = {"rank": 5, "host": "h05", "round": 12, "partner": 3, "reason": "no message for 60 s"}
    diagnosis = diagnose(attributed(RUN, lost=[entry], state="interrupted"), MESH.topology)
    assert named(diagnosis) == set()
    assert named(diagnosis, State.SUSPECT) == {("host", "h05", None)}
    finding = diagnosis.verdict.findings[0]
    assert sentences(finding.evidence) == PINNED["1 rank lost: rank 5 in round"]
    assert group(finding) == ("host h03", "route h05=h03")
    assert (diagnosis.verdict.verdict, diagnosis.verdict.exit_code) == ("incomplete", 3)
    fine = next(f for f in diagnosis.verdict.findings if f.state is State.OK and f.component == "host")
    assert fine.name == "h[00-02,04,06-15]"


def test_a_rank_that_was_lost_before_all_was_measured_names_no_host() -> None:
    entry = {"rank": 5, "host": "h05", "round": 12, "partner": 3, "reason": "no message for 60 s"}
    assert diagnose(attributed(RUN, lost=[entry]), MESH.topology).verdict == diagnose(RUN, MESH.topology).verdict


def test_a_rank_lost_outside_of_rounds_has_no_partner() -> None:
    entry = {"rank": None, "host": "h05", "round": None, "partner": None, "reason": "died"}
    finding = diagnose(attributed(RUN, lost=[entry], state="interrupted")).verdict.findings[0]
    assert sentences(finding.evidence) == "1 rank lost: one of its ranks: died"
    assert group(finding) == ()


def test_a_rank_that_two_ranks_of_its_own_host_report_is_one_rank_without_another_suspect() -> None:
    run = attributed(RUN, rank_host=[0] * RUN.ranks)
    reports = [{"rank": 2, "host": "h00", "round": 14, "partner": other, "reason": "failed"} for other in (1, None)]
    (finding,) = lost(attributed(run, lost=reports, state="interrupted"))
    assert sentences(finding.evidence) == "1 rank lost: rank 2 in round 14: failed"
    assert group(finding) == ()


def test_an_interrupted_row_is_noted_and_leaves_the_verdict_open() -> None:
    run = row_attributed(RUN, "bandwidth", state="interrupted", reason="9 of 12 cells are in the files")
    verdict = diagnose(run, MESH.topology).verdict
    assert verdict.exit_code == 3
    assert PINNED["row bandwidth: interrupted"] in note_texts(verdict)
