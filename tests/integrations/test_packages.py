"""Package files of Spack and EasyBuild, the module file: what they install is what pyproject.toml needs."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import spack_stand_in

from fablint import __version__

ROOT = Path(__file__).parents[2]
INTEGRATIONS = ROOT / "integrations"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SPACK = INTEGRATIONS / "spack" / "package.py"
MODULE = INTEGRATIONS / "modulefiles" / "fablint.lua"
LMOD = Path("/usr/share/lmod/lmod/libexec/lmod")
EASYCONFIG, *OTHER_EASYCONFIGS = (INTEGRATIONS / "easybuild").glob("*.eb")


def needed(words: list[str]) -> dict[str, str]:
    """Lowest version of each requirement, by its name in lower case."""
    found = {}
    for word in words:
        name, lowest = re.fullmatch(r"([\w-]+)(?:>=([\d.]+))?.*", word).groups()
        found[name.lower().replace("_", "-")] = lowest or ""
    return found


def test_the_spack_package_has_the_dependencies_of_the_project() -> None:
    recorded = spack_stand_in.execute(SPACK)
    assert recorded.versions == [__version__]
    assert recorded.licenses == [PROJECT["license"]]
    lowest = {"": {}, "+export": {}}
    for spec, condition, types in recorded.depends_on:
        name, _, versions = spec.partition("@")
        if name.startswith("py-") and types != ("build",):
            lowest[condition][name.removeprefix("py-")] = versions.split(":")[0]
    assert lowest[""] == needed(PROJECT["dependencies"])
    assert lowest["+export"] == needed(PROJECT["optional-dependencies"]["export"])
    assert ("py-hatchling@1.25:", "", ("build",)) in recorded.depends_on
    assert ("mpi@3.1:", "", ("build", "run")) in recorded.depends_on
    assert [*recorded.variants] == ["export"]


def test_the_spack_package_sets_the_compiler_of_its_mpi() -> None:
    environment = spack_stand_in.Environment()
    package = spack_stand_in.execute(SPACK).package("/opt/mpi/bin/mpicxx")
    package.setup_run_environment(environment)
    assert environment.variables == {"FABLINT_MPICXX": "/opt/mpi/bin/mpicxx"}


def test_the_easyconfig_installs_the_dependencies_of_the_project() -> None:
    assert not OTHER_EASYCONFIGS
    values = {}
    for statement in ast.parse(EASYCONFIG.read_text()).body:
        if isinstance(statement, ast.Assign) and statement.targets[0].id not in ("exts_list",):
            values[statement.targets[0].id] = ast.literal_eval(statement.value)
    assert EASYCONFIG.name == "fablint-{}-{name}-{version}.eb".format(values["version"], **values["toolchain"])
    assert values["version"] == __version__
    text = EASYCONFIG.read_text()
    extensions = dict(re.findall(r"^    \('([\w-]+)', '([\w.]+)'", text, re.M))
    names = {name.lower().replace("_", "-"): version for name, version in extensions.items()}
    modules = {"click", "jinja2", "numpy", "scipy"}  # of the bundles that the comments name
    for name, lowest in needed(PROJECT["dependencies"]).items():
        if name in modules:
            assert re.search(rf"# .*\b{name}\b", text), name
        else:
            assert [*map(int, names[name].split(".")[:2])] >= [*map(int, lowest.split(".")[:2])], name


@pytest.mark.skipif(not LMOD.exists(), reason="Lmod is not installed (Debian: lmod)")
def test_lmod_loads_the_module(tmp_path: Path) -> None:
    folder = tmp_path / "fablint"
    folder.mkdir()
    shutil.copy(MODULE, folder / f"{__version__}.lua")
    environ = {**os.environ, "MODULEPATH": str(tmp_path), "LMOD_IGNORE_CACHE": "1"}
    environ.pop("MANPATH", None)
    words = [str(LMOD), "python", "load", "fablint"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    script = done.stdout + "\nimport sys; sys.stdout.write(os.environ['PATH'] + '\\n' + os.environ['MANPATH'])"
    loaded = subprocess.run(
        [sys.executable, "-c", "import os\n" + script], env=environ, capture_output=True, text=True, check=False
    )
    path, manpath = loaded.stdout.splitlines()[-2:]
    assert path.startswith("/opt/fablint/module-bin:"), done.stderr
    assert manpath in ("/opt/fablint/share/man:", "/opt/fablint/share/man::"), done.stderr


def test_the_module_file_has_the_version() -> None:
    assert f'whatis("Version: {__version__}")' in MODULE.read_text()
