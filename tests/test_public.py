"""What the package promises from outside: its names, its documents, the code in them."""

import importlib
import pkgutil
import re
import runpy
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import elephant_nn
from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.report.statistics import best_setting, runs_of
from elephant_nn.report.tables import as_markdown, choices, comparison

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", re.DOTALL)
CODE = [
    pytest.param(*match.groups(), id=f"{path.name}-{i}")
    for path in DOCUMENTS
    for i, match in enumerate(BLOCK.finditer(path.read_text()))
]


def test_every_public_name_loads_and_is_explained():
    for name in elephant_nn.__all__:
        value = getattr(elephant_nn, name)
        assert isinstance(value, dict) or value.__doc__, name
    assert set(elephant_nn.__all__) == set(elephant_nn._HOME)
    assert set(dir(elephant_nn)) == set(elephant_nn.__all__)
    with pytest.raises(AttributeError, match="no attribute 'elefant'"):
        _ = elephant_nn.elefant


def test_no_public_name_hides_a_module():
    modules = {module.name for module in pkgutil.iter_modules(elephant_nn.__path__)}
    assert not modules & set(elephant_nn.__all__)


def test_every_public_name_is_documented():
    reference = (ROOT / "docs" / "reference.md").read_text()
    missing = [name for name in elephant_nn.__all__ if f"`{name}" not in reference]
    assert not missing


def test_importing_the_package_is_instant():
    script = "import sys, elephant_nn; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_rooms_import_one_way():
    """activations, networks, ... <- learners <- streams <- runs <- experiments <- report <- cli."""
    order = [
        "learners",
        "rl",
        "editing",
        "data",
        "checking",
        "streams",
        "runs",
        "experiments",
        "report",
        "bench",
        "cli",
    ]
    for module in pkgutil.walk_packages(elephant_nn.__path__, "elephant_nn."):
        room = module.name.split(".")[1]
        height = order.index(room) if room in order else -1
        if room in {"bench", "cli"}:
            continue
        source = Path(importlib.import_module(module.name).__file__).read_text()
        for used in re.findall(r"(?:from|import) elephant_nn\.(\w+)", source):
            reach = order.index(used) if used in order else -1
            assert reach <= height, f"{module.name} reaches up to {used}"


@pytest.mark.parametrize(("code", "printed"), CODE)
def test_code_in_the_documents_runs_and_prints_what_they_say(code, printed, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(compile(code, "document", "exec"), {})
    if printed is not None:
        words = capsys.readouterr().out.split()
        for ours, documented in zip(words, printed.split(), strict=True):
            assert ours == documented or float(ours) == pytest.approx(float(documented), rel=1e-3)


def test_links_between_documents_lead_somewhere():
    for path in DOCUMENTS:
        for target in re.findall(r"\]\((?!http|#)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_kept_tables_follow_from_the_kept_rows(name):
    folder = ROOT / "docs" / "results" / name
    if not folder.exists():
        pytest.skip("not run yet")
    rows = pl.read_parquet(folder / "rows.parquet")
    grids = (comparison(EXPERIMENTS[name], rows), choices(EXPERIMENTS[name], rows))
    text = "\n\n".join(as_markdown(grid) for grid in grids if grid.lines)
    assert (folder / "tables.md").read_text() == f"{text}\n"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_settings_are_what_the_kept_sweeps_chose(name):
    kept = ROOT / "docs" / "results" / name / "rows.parquet"
    if not kept.exists():
        pytest.skip("not run yet")
    rows, experiment = pl.read_parquet(kept), EXPERIMENTS[name]
    for entry in experiment.entries:
        choice = best_setting(rows, experiment, entry) if entry.grid else None
        if choice and not entry.rivals:
            assert choice.hyper == entry.settings, f"{entry.label}: the sweep chose {choice.hyper}"
        if entry.grid and runs_of(rows, experiment, entry, entry.settings).height:
            assert entry.guessed == (choice is None), entry.label


def test_the_readme_quotes_the_kept_table():
    quoted = re.search(
        r"<!-- split-digits -->\n(.*?)<!-- /split-digits -->",
        (ROOT / "README.md").read_text(),
        re.DOTALL,
    )
    collect = runpy.run_path(str(ROOT / "docs" / "results" / "collect.py"))
    assert quoted is not None
    assert quoted[1].strip() == collect["readme_table"]()


@pytest.mark.parametrize("document", ["classes.md", "rl.md"])
def test_documents_quote_the_kept_tables(document):
    text = (ROOT / "docs" / document).read_text()
    quoted = dict(re.findall(r"<!-- ([\w-]+) -->\n(.*?)<!-- /\1 -->", text, re.DOTALL))
    collect = runpy.run_path(str(ROOT / "docs" / "results" / "collect.py"))
    kept = {
        name: tables.read_text()
        for name in collect["DOCUMENTS"][document]
        if (tables := ROOT / "docs" / "results" / name / "tables.md").exists()
    }
    assert len(kept) >= 4
    assert quoted.keys() == kept.keys()
    for name, tables in kept.items():
        assert quoted[name].strip() == tables.strip(), f"{name}: run docs/results/collect.py"


def test_rows_kept_once_stay_and_newer_ones_of_the_same_run_win(tmp_path):
    with_kept = runpy.run_path(str(ROOT / "docs" / "results" / "collect.py"))["with_kept"]
    kept, new = (
        tmp_path / "rows.parquet",
        pl.DataFrame({"cell": ["b", "c"], "accuracy": [2.0, 3.0]}),
    )
    assert with_kept(new, kept).equals(new)
    pl.DataFrame({"cell": ["a", "b"], "accuracy": [0.1, 0.2], "seed": [0, 0]}).write_parquet(kept)
    both = with_kept(new, kept).sort("cell")
    assert both.select("cell", "accuracy").rows() == [("a", 0.1), ("b", 2.0), ("c", 3.0)]
