"""Write the files and lines of a new part: `make new-check ID=host.x`, `new-importer TOOL=x`, `new-kernel NAME=x`.

What is written is complete and passes the tests: a check that compares the text of a file between similar hosts, a
reader of a table of pairs, a ping-pong. Replace its contents step by step as docs/developing/ describes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEMPLATES = Path(__file__).parent / "templates"
CHECKS = Path("src/fablint/preflight/checks")
CHECK_REGISTRY = Path("src/fablint/preflight/check_registry.py")
COLLECTOR = Path("src/fablint/snapshot/agent/collector.py")
FORMATS = Path("src/fablint/store/importing/formats.py")
IMPORT_PAGE = Path("docs/how-to/import.md")
IMPORT_HELP = Path("src/fablint/cli/import_.py")
TUNED_HOSTS = Path("tests/preflight/tuned_hosts.py")
KERNELS = Path("engine/registry/kernels.inc")
ENGINE_PAGE = Path("docs/reference/engine.md")
CHANGES = Path("CHANGELOG.md")
PAGES = ("man_pages.py", "shell_completion.py")  # programs of docs/ that write pages, with *_reference.py
WIDTH = 120
LONGEST_ID = 20  # of a check: the length of a reason in `sinfo -R`


# ---- files and lines


def template(name: str, words: Mapping[str, str]) -> str:
    """Return the text of a template with `@WORD@` replaced."""
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda match: words[match[1]], text)


def write(path: Path, text: str) -> None:
    """Write a new file; refuse to replace one."""
    target = ROOT / path
    if target.exists():
        sys.exit(f"{path} exists already: choose another name")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    print(f"new      {path}")


def change(path: Path, old: str, new: str) -> None:
    """Replace a text that a file has once."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if text.count(old) != 1:
        sys.exit(f"{path}: '{old.strip()[:60]}' is not there once: add the line by hand")
    (ROOT / path).write_text(text.replace(old, new), encoding="utf-8")
    print(f"changed  {path}")


def add_change(line: str) -> None:
    """Append a line to the list of changes."""
    path = ROOT / CHANGES
    path.write_text(f"{path.read_text(encoding='utf-8').rstrip()}\n* {line}\n", encoding="utf-8")
    print(f"changed  {CHANGES}")


def refuse_unless(is_right: bool, why: str) -> None:
    if not is_right:
        sys.exit(why)


# ---- parts


def new_check(name: str, file: str) -> None:
    """Write a check that compares the text of a file between similar hosts."""
    family, _, subject = name.partition(".")
    refuse_unless(bool(re.fullmatch(r"[a-z]+(?:\.[a-z0-9]+)+", name)), f"ID={name}: write FAMILY.SUBJECT: host.clock")
    refuse_unless(len(name) <= LONGEST_ID, f"ID={name}: at most {LONGEST_ID} characters, as many as sinfo -R shows")
    places = Counter(path.parent.name for path in (ROOT / CHECKS).rglob("*.py") if f'id="{family}.' in path.read_text())
    refuse_unless(bool(places), f"ID={name}: no check is called {family}.*: take the family of a similar check")
    refuse_unless(not _has_id(name), f"ID={name}: there is such a check")
    folder, module = places.most_common(1)[0][0], name.replace(".", "_")
    words = {
        "ID": name,
        "FOLDER": folder,
        "MODULE": module,
        "CONSTANT": module.upper(),
        "FILE": file or f"/proc/sys/kernel/{subject.replace('.', '_')}",
        "WORDS": subject.replace(".", " "),
    }
    tests = folder if (ROOT / "tests/preflight" / folder).is_dir() else "devices"
    write(CHECKS / folder / f"{module}.py", template("check.py.txt", words))
    write(Path(f"tests/preflight/{tests}/test_{module}.py"), template("check_test.py.txt", words))
    _register(folder, module, words["CONSTANT"], family)
    if f'"{words["FILE"]}"' not in (ROOT / COLLECTOR).read_text(encoding="utf-8"):
        mark = '    "/proc/self/limits",\n'
        change(COLLECTOR, mark, f'    "{words["FILE"]}",\n{mark}')
    mark = "    return files | adapter(index, cpus)\n"
    change(TUNED_HOSTS, mark, f'    files["{words["FILE"]}"] = "1"\n{mark}')
    add_change(f"`fablint preflight`: `{name}` compares {words['WORDS']} between similar hosts.")


def _has_id(name: str) -> bool:
    return any(f'id="{name}"' in path.read_text(encoding="utf-8") for path in (ROOT / CHECKS).rglob("*.py"))


def _register(folder: str, module: str, constant: str, family: str) -> None:
    """Add a module and its row to the table of checks, after the last row of a module with checks of its family."""
    text = (ROOT / CHECK_REGISTRY).read_text(encoding="utf-8")
    line = re.search(rf"^from fablint\.preflight\.checks\.{folder} import (?:\(([^)]*)\)|(.*))$", text, re.MULTILINE)
    if line is None:
        sys.exit(f"{CHECK_REGISTRY}: nothing is imported from checks.{folder}: add the line by hand")
    modules = sorted({*re.findall(r"\w+", line[1] or line[2]), module})
    imports = f"from fablint.preflight.checks.{folder} import ({', '.join(modules)})"
    of_family = {path.stem for path in (ROOT / CHECKS / folder).glob("*.py") if f'id="{family}.' in path.read_text()}
    rows = [row for row in re.finditer(r"^    (\w+)\.[A-Z0-9_]+,\n", text, re.MULTILINE) if row[1] in of_family]
    end = rows[-1].end()
    text = f"{text[:end]}    {module}.{constant},\n{text[end:]}"
    (ROOT / CHECK_REGISTRY).write_text(text.replace(line[0], imports), encoding="utf-8")
    print(f"changed  {CHECK_REGISTRY}")


def new_importer(name: str) -> None:
    """Write a reader of a table of pairs, and an output that it reads."""
    refuse_unless(bool(re.fullmatch(r"[a-z][a-z0-9_]*", name)), f"TOOL={name}: small letters, digits and _")
    words = {"NAME": name, "CLASS": _camel(name)}
    write(FORMATS.parent / f"{name}.py", template("importer.py.txt", words))
    write(Path(f"tests/fixtures/{name}/{name}-1.0.txt"), template("importer_output.txt", words))
    write(Path(f"tests/fixtures/{name}/README.md"), template("importer_readme.md.txt", words))
    write(Path(f"tests/store/importing/test_{name}.py"), template("importer_test.py.txt", words))
    imports_end = ",\n)\nfrom fablint.store.importing.cells import"
    change(FORMATS, imports_end, f",\n    {name}{imports_end}")
    mark = '    Format("CSV", '
    change(FORMATS, mark, f'    Format("{name}", _has_mark({name}.MARK), {name}.read_{name}),\n{mark}')
    row = f"| {name} | 1.0: a table of pairs | in the file | `latency` | as printed | - |\n"
    change(IMPORT_PAGE, "| CSV | see below", f"{row}| CSV | see below")
    _name_in_help(name)
    add_change(f"`fablint import` reads the output of {name}.")


def _name_in_help(name: str) -> None:
    """Add a tool to the paragraph of the help text that lists them, filled anew."""
    text = (ROOT / IMPORT_HELP).read_text(encoding="utf-8")
    start = text.index("    Supported are ")
    end = text.index("\n\n", start)
    words = text[start:end].replace(", and CSV with", f", {name}, and CSV with")
    filled = textwrap.fill(" ".join(words.split()), WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4)
    change(IMPORT_HELP, text[start:end], filled)


def new_kernel(name: str) -> None:
    """Write a ping-pong as a kernel of its own."""
    refuse_unless(bool(re.fullmatch(r"[a-z][a-z0-9_]*", name)), f"NAME={name}: small letters, digits and _")
    words = {"NAME": name, "CLASS": _camel(name)}
    write(Path(f"engine/kernels/{name}.cpp"), template("kernel.cpp.txt", words))
    write(Path(f"tests/engine/kernels/test_kernel_{name}.py"), template("kernel_test.py.txt", words))
    title = f"fablint {name.replace('_', ' ').title()} Test"
    entry = (
        f'KERNEL({name}, quantity = latency, payload = both, sizes = from_1, default_sizes = "1:4M", groups = pairs,\n'
        f'       options = "directions", osu_title = "{title}", description = "half of a message and its answer")\n'
    )
    change(KERNELS, "\n#undef KERNEL\n", f"{entry}\n#undef KERNEL\n")
    row = "| `gpu_loopback` |"
    change(ENGINE_PAGE, row, f"| `{name}` | half of a message and its answer |\n{row}")
    add_change(f"Kernel `{name}`: half of the time of a message and its answer.")


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


# ---- as a program


def main() -> None:
    """Write the part that the command line names, then format it and renew the pages that are written from tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("check", "importer", "kernel"))
    parser.add_argument("name")
    parser.add_argument("--file", default="", help="of a check: the file whose text is compared")
    options = parser.parse_args()
    if options.part == "check":
        new_check(options.name, options.file)
    elif options.part == "importer":
        new_importer(options.name)
    else:
        new_kernel(options.name)
    ruff = [sys.executable, "-m", "ruff"]
    for words in (["format", "--quiet"], ["check", "--quiet", "--fix"], ["format", "--quiet"]):
        subprocess.run([*ruff, *words, "src", "tests"], cwd=ROOT, check=True)
    for page in (*sorted((ROOT / "docs").glob("*_reference.py")), *map((ROOT / "docs").joinpath, PAGES)):
        subprocess.run([sys.executable, str(page)], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
