"""Settings of Sphinx: `make docs` writes the documentation as a site to build/docs.

Neither the site nor its search needs a network or a server.
"""

from __future__ import annotations

from fablint import __version__

# The pages in the order of the sidebar: docs/index.md has no toctree, so that it reads well without Sphinx.
CONTENTS = {
    "Tutorial": ["tutorial/first-hour"],
    "How-to guides": [
        "how-to/install",
        "how-to/run-on-one-machine",
        "how-to/check",
        "how-to/suites",
        "how-to/submit",
        "how-to/large-systems",
        "how-to/discover",
        "how-to/preflight",
        "how-to/read-a-report",
        "how-to/act",
        "how-to/compare",
        "how-to/history",
        "how-to/reference-benchmarks",
        "how-to/import",
        "how-to/export",
        "how-to/read-a-run",
        "how-to/simulate",
    ],
    "Reference": [
        "reference/cli",
        "reference/benchmarks",
        "reference/verdict",
        "reference/python",
        "reference/run-format",
        "reference/topology-file",
        "reference/site-file",
        "reference/snapshot",
        "reference/preflight-checks",
        "reference/published-practice",
        "reference/tables",
        "reference/engine",
        "reference/simulated-fabrics",
        "glossary",
    ],
    "Explanation": [
        "explanation/how-it-decides",
        "explanation/late-messages",
        "explanation/pairs-and-paths",
        "explanation/follow-ups",
        "explanation/accuracy",
        "explanation/scale",
        "explanation/held-out-fabrics",
        "explanation/generated-fleets",
        "explanation/benchmarks",
    ],
    "Decisions": [
        "decisions/0001-run-directory-layout",
        "decisions/0002-dependencies",
        "decisions/0003-cluster",
        "decisions/0004-preflight",
        "decisions/0005-thread-level",
        "decisions/0006-registry-and-capabilities",
        "decisions/0007-zarr",
        "decisions/0008-arrays",
        "decisions/0009-own-engine",
        "decisions/0010-e-values",
        "decisions/0011-fitted-model",
    ],
    "For contributors": [
        "developing/index",
        "developing/add-a-check",
        "developing/add-an-importer",
        "developing/add-a-kernel",
        "developing/add-a-benchmark",
        "developing/add-a-page-element",
        "developing/add-a-detector",
        "developing/release",
    ],
}

project = "fablint"
version = release = __version__
root_doc = "index"
extensions = ["myst_parser"]
exclude_patterns = ["*.py"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"fablint {__version__}"
html_static_path = ["site"]
html_css_files = ["wide.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False


def table_of_contents() -> str:
    """Directives that give the sidebar its chapters."""
    return "\n".join(
        "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```"])
        for caption, pages in CONTENTS.items()
    )


def add_table_of_contents(_: object, page: str, source: list[str]) -> None:
    if page == root_doc:
        source[0] += table_of_contents()


def setup(app: object) -> None:
    app.connect("source-read", add_table_of_contents)
