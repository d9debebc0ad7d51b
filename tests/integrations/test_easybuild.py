"""The EasyBuild configuration in EasyBuild itself: its parser, its toolchain, its easyblock and its style."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EASYCONFIG = next((Path(__file__).parents[2] / "integrations" / "easybuild").glob("*.eb"))
LMOD = Path("/usr/share/lmod/lmod/libexec/lmod")

pytest.importorskip("easybuild.framework", reason="the extra `integrations` is not installed")
pytestmark = pytest.mark.skipif(not LMOD.exists(), reason="Lmod is not installed (Debian: lmod)")

# EasyBuild keeps its configuration in one object of the process, so it has a process of its own.
SETTINGS = """
import sys
from easybuild.tools.options import set_up_configuration
set_up_configuration(args=["--prefix=" + sys.argv[2], "--allow-use-as-root-and-accept-consequences"], silent=True)
"""


def said_by_easybuild(code: str, folder: Path, easyconfig: Path = EASYCONFIG) -> str:
    words = [sys.executable, "-c", SETTINGS + code, easyconfig, folder]
    settings = {**os.environ, "LMOD_CMD": str(LMOD)}
    done = subprocess.run(words, env=settings, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else f"{done.stdout}{done.stderr}"


VALIDATE = """
from easybuild.framework.easyconfig.easyconfig import EasyConfig, get_easyblock_class
found = EasyConfig(sys.argv[1])
block = get_easyblock_class(found["easyblock"], name=found.name)
print(*(one["name"] for one in found.dependencies()), type(found.toolchain).__name__, block.__name__)
"""


def test_easybuild_accepts_it(tmp_path: Path) -> None:
    names = "Cython Python Python-bundle-PyPI SciPy-bundle PyYAML pydantic"
    assert said_by_easybuild(VALIDATE, tmp_path).splitlines()[-1] == f"{names} Foss PythonBundle"


def test_easybuild_refuses_a_misspelt_parameter(tmp_path: Path) -> None:
    wrong = tmp_path / EASYCONFIG.name
    wrong.write_text(EASYCONFIG.read_text().replace("moduleclass =", "moduleclas ="))
    assert "moduleclas" in said_by_easybuild(VALIDATE, tmp_path, wrong)


def test_the_style_is_that_of_easybuild(tmp_path: Path) -> None:
    code = """
from easybuild.framework.easyconfig.style import check_easyconfigs_style
print(check_easyconfigs_style([sys.argv[1]]))
"""
    assert said_by_easybuild(code, tmp_path).splitlines()[-1] == "0"
