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
import yaml

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
    lowest = {"": {}, "+export": {}, "+xarray": {}}
    for spec, condition, types in recorded.depends_on:
        name, _, versions = spec.partition("@")
        if name.startswith("py-") and types != ("build",):
            lowest[condition][name.removeprefix("py-")] = versions.split(":")[0]
    assert lowest[""] == needed(PROJECT["dependencies"])
    assert lowest["+xarray"] == needed(PROJECT["optional-dependencies"]["xarray"])
    assert lowest["+export"] == needed(PROJECT["optional-dependencies"]["export"])
    assert ("py-hatchling@1.25:", "", ("build",)) in recorded.depends_on
    assert ("mpi@3.1:", "", ("build", "run")) in recorded.depends_on
    assert [*recorded.variants] == ["xarray", "export"]


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


OLD_PYTHONS = sorted(Path.home().glob(".pyenv/versions/3.[6-9].*/bin/python"))


def test_a_python_that_is_too_old_reads_the_first_module() -> None:
    source = (ROOT / "src" / "fablint" / "__init__.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))
    assert source.index("sys.exit") < source.index("fablint.version")


@pytest.mark.skipif(not OLD_PYTHONS, reason="no older Python is installed")
def test_a_python_that_is_too_old_says_so_in_one_line() -> None:
    words = [OLD_PYTHONS[-1], "-m", "fablint", "check"]
    done = subprocess.run(words, cwd=ROOT / "src", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"fablint: Python 3\.\d+ is too old: use Python 3\.11 or later\n", done.stderr)


CONDA = INTEGRATIONS / "conda" / "meta.yaml"
CONTAINERFILE = ROOT / "Containerfile"
CONDA_NAMES = {"clustershell": "clustershell", "pyyaml": "pyyaml", "prometheus-client": "prometheus_client"}


def test_the_conda_recipe_has_the_version_and_the_dependencies_of_the_project() -> None:
    recipe = yaml.safe_load(re.sub(r"\{[{%].*?[%}]\}", "", CONDA.read_text()))
    assert recipe["package"]["version"] == __version__
    run = {re.split(r"[ >=<]", word)[0]: word for word in recipe["requirements"]["run"]}
    for name, lowest in needed(PROJECT["dependencies"]).items():
        assert f">={lowest}" in run[CONDA_NAMES.get(name, name)], name
    assert f"python {PROJECT['requires-python']}" in recipe["requirements"]["run"]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["test"]["commands"] == ["fablint --version", "fablint doctor --help"]


def test_the_containerfile_copies_files_that_exist_and_starts_fablint() -> None:
    lines = CONTAINERFILE.read_text().splitlines()
    words = {line.split()[0]: line for line in lines if line and line[0].isupper()}
    copied = [word for line in lines if line.startswith("COPY") and "--from" not in line for word in line.split()[1:-1]]
    assert copied and all((ROOT / word).exists() for word in copied), copied
    assert words["ENTRYPOINT"] == 'ENTRYPOINT ["fablint"]'


def test_the_classifiers_name_the_pythons_that_ci_tests() -> None:
    classified = {word.rpartition(" ")[2] for word in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", word)}
    script = (ROOT / ".ci" / "run").read_text()
    assert classified == {"3.11", *re.findall(r"\bpython(3\.1[2-9])\b", script)}
