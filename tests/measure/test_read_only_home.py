"""A FABLINT_HOME that a site provides read-only: engines from there, all that is written in the user's folders."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fablint.errors import UsageError
from fablint.measure import examine
from fablint.workflows.run_history import save_baseline, site_with_baseline
from fablint_command import COMMAND
from pinned import pinned_by
from tested_mpis import built_engine, tested_mpis as names_of_mpis

PINNED = pinned_by("measure.toml", __file__)

FOLDERS = {"scratch": "cache", "versions": "cache", "engines": "cache", "jobs": "state", "baselines": "state"}


@pytest.fixture
def site(staged, tmp_path, monkeypatch) -> Path:
    """FABLINT_HOME of a site, which the user cannot write; root could."""
    site = tmp_path / "site"
    (site / "engines").mkdir(parents=True)
    staged.variables |= {"FABLINT_HOME": str(site), "HOME": str(tmp_path / "user")}
    staged.variables |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_STATE_HOME": str(tmp_path / "state")}
    real = os.access

    def refused(path, mode, **more):
        return not (mode & os.W_OK and Path(path).is_relative_to(site)) and real(path, mode, **more)

    monkeypatch.setattr(os, "access", refused)
    return site


def test_each_folder_is_the_user_s_cache_or_state(staged, site, tmp_path):
    for name, kind in FOLDERS.items():
        assert staged.home_folder(name) == tmp_path / kind / "fablint" / name
        assert (tmp_path / kind / "fablint" / name).is_dir()
    assert staged.home_folder(".") == tmp_path / "state" / "fablint"
    assert [path.name for path in site.iterdir()] == ["engines"]


def test_the_defaults_of_the_xdg_folders(staged, site, tmp_path, monkeypatch):
    del staged.variables["XDG_CACHE_HOME"], staged.variables["XDG_STATE_HOME"]
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    assert staged.own_path("scratch") == tmp_path / "user" / ".cache" / "fablint" / "scratch"
    assert staged.own_path("jobs") == tmp_path / "user" / ".local" / "state" / "fablint" / "jobs"


def test_a_home_that_can_be_written_has_all_folders(staged, tmp_path):
    for name in FOLDERS:
        assert staged.own_path(name) == staged.home / name
        assert staged.home_folder(name) == staged.home / name


def test_a_folder_of_the_site_that_users_may_write_is_used(staged, site, tmp_path, monkeypatch):
    (site / "scratch").mkdir()
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) == site / "scratch" or real(path, mode))
    assert staged.own_path("scratch") == site / "scratch"
    assert staged.own_path("jobs") == tmp_path / "state" / "fablint" / "jobs"


def test_a_home_that_does_not_exist_is_a_mistake_and_not_read_only(staged):
    staged.variables["FABLINT_HOME"] = "/proc/nowhere"
    with pytest.raises(UsageError, match="set FABLINT_HOME to a directory you can write"):
        staged.home_folder("scratch")


def test_the_folder_that_cannot_be_made_is_named_with_its_variable(staged, site, tmp_path):
    (tmp_path / "state").write_text("a file")
    with pytest.raises(UsageError, match="set XDG_STATE_HOME to a directory you can write"):
        staged.home_folder("jobs")


def test_the_doctor_names_both(staged, site, tmp_path):
    check = next(check for check in examine(staged) if check.name == "FABLINT_HOME")
    assert check.ok
    assert check.state == PINNED["site read only; files"].filled(site=site, tmp_path=tmp_path)


def test_baselines_of_the_site_are_read_and_those_of_the_user_first(staged, site, tmp_path):
    (site / "baselines").mkdir()
    (of_site := site / "baselines" / "spring.toml").write_text("")
    assert site_with_baseline(staged, "spring", None) == of_site
    own = save_baseline(staged, "spring", ())
    assert own.is_relative_to(tmp_path / "state")
    assert site_with_baseline(staged, "spring", None) == own


def test_a_user_measures_with_the_engine_of_the_site(tmp_path):
    engine = built_engine(names_of_mpis()[0])
    site, user = tmp_path / "site", tmp_path / "user"
    shutil.copytree(engine.path.parent, site / "engines" / engine.key)
    user.mkdir()
    before = sorted(site.rglob("*"))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    environ |= {"FABLINT_HOME": str(site), "HOME": str(user), "FABLINT_MPICXX": str(engine.mpicxx)}
    read_only = ["unshare", "--mount", "sh", "-c", 'mount --bind -o ro "$0" "$0" && exec "$@"', str(site)]
    if os.geteuid() != 0:
        read_only = []
        for folder in (site / "engines", site):
            folder.chmod(0o555)

    def fablint(*words: object) -> str:
        command = [*read_only, *COMMAND, *map(str, words)]
        done = subprocess.run(command, cwd=user, env=environ, capture_output=True, text=True, timeout=120)
        if "unshare failed" in done.stderr:
            pytest.skip("this container makes no mount namespaces")
        assert done.returncode in (0, 3), done.stderr
        assert "building the engine" not in done.stderr
        return done.stdout

    assert str(site / "engines" / engine.key) in fablint("engine", "path")
    assert "OSU MPI Latency Test" in fablint("bench", "latency", "--sizes", "8", "--samples", "3")
    fablint("simulate", "--host-count", "8", "-q", "-o", "night.run")
    assert "added" in fablint("history", "add", "night.run")
    assert "night.run" in fablint("history", "list")
    assert sorted(site.rglob("*")) == before
    assert (user / ".local" / "state" / "fablint" / "history.sqlite").is_file()
    assert (user / ".cache" / "fablint" / "scratch").is_dir()
