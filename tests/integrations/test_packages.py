"""Package files of Spack and EasyBuild, the module file: parsed, and compared with pyproject.toml."""

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
    calls = [node for node in ast.walk(ast.parse(SPACK.read_text())) if isinstance(node, ast.Call)]
    by_name = {(call.func.id, call.args[0].value) for call in calls if isinstance(call.func, ast.Name) and call.args}
    versions = {value for name, value in by_name if name == "version"}
    assert __version__ in versions
    specs = [value.split("@") for name, value in by_name if name == "depends_on" and value.startswith("py-")]
    declared = {name.removeprefix("py-"): lowest.split(":")[0] for name, lowest in specs}
    wanted = needed(PROJECT["dependencies"]) | needed(PROJECT["optional-dependencies"]["export"])
    assert declared == wanted | {"hatchling": "1.25"}


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


def test_easybuild_reads_the_easyconfig() -> None:
    parser = pytest.importorskip("easybuild.framework.easyconfig.parser", reason="easybuild-framework is not installed")
    values = parser.EasyConfigParser(str(EASYCONFIG)).get_config_dict()
    assert ("fablint", __version__) in [tuple(extension[:2]) for extension in values["exts_list"]]


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
