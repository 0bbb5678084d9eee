"""What the package promises from outside: its names, its layers, its documents and their code."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import INCOMPLETE

import elephant_nn
from elephant_nn.experiments.tables import TABLES
from elephant_nn.report import publishing
from elephant_nn.report.tables import as_markdown, chosen_settings, comparison

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "elephant_nn"
KEPT = ROOT / "docs" / "results"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", re.DOTALL)
CODE = [
    pytest.param(
        *match.groups(),
        id=f"{path.name}-{i}",
        marks=[pytest.mark.slow] if "train(" in match[1] else [],
    )
    for path in DOCUMENTS
    for i, match in enumerate(BLOCK.finditer(path.read_text()))
]


def test_every_public_name_loads_from_its_home():
    for name in elephant_nn.__all__:
        home = importlib.import_module(elephant_nn._MODULES[name])
        assert getattr(home, name) is getattr(elephant_nn, name)
    assert dir(elephant_nn) == elephant_nn.__all__
    with pytest.raises(AttributeError, match="no attribute 'elefant'"):
        _ = elephant_nn.elefant


def test_every_public_function_and_class_has_a_docstring_of_its_own():
    for name in elephant_nn.__all__:
        value = getattr(elephant_nn, name)
        if inspect.isclass(value):
            text = value.__dict__.get("__doc__") or ""
            assert not text.startswith(f"{name}("), f"{name} has only the generated docstring"
            assert text, name
        elif inspect.isroutine(value):
            assert value.__doc__, name


def test_no_public_name_hides_a_module():
    modules = {module.name for module in pkgutil.iter_modules(elephant_nn.__path__)}
    assert not modules & set(elephant_nn.__all__)


def test_the_reference_lists_exactly_the_public_names():
    reference = (ROOT / "docs" / "reference.md").read_text()
    public, _, _ = reference.partition("## Reinforcement learning")
    listed = set(re.findall(r"`(\w+)(?:\(|`)", " ".join(re.findall(r"^\| (.*?) \|", public, re.M))))
    assert listed == set(elephant_nn.__all__)


def test_importing_the_package_is_instant():
    script = (
        "import sys, elephant_nn; heavy = {'jax', 'numpy', 'polars'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


LAYERS = (
    ("files",),
    ("arrays", "data_checks", "ridge_solver"),
    ("nn", "states", "online_ridge", "collateral"),
    ("theory", "learners"),
    ("data",),
    ("streams", "rl"),
    ("editing", "checking", "calibration", "diagnosis"),
    ("estimators",),
    ("sklearn", "river", "torch"),
    ("runs",),
    ("experiments",),
    ("report",),
    ("cli",),
    ("__main__",),
)
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}


def imported(path):
    """Every module of the package that a file imports, in whatever form."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            depth = [*path.relative_to(SOURCE.parent).parts][: -node.level]
            yield ".".join([*depth, node.module or ""])
        elif isinstance(node, ast.ImportFrom) and node.module == "elephant_nn":
            for alias in node.names:
                yield elephant_nn._MODULES.get(alias.name, f"elephant_nn.{alias.name}")
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_imports_point_one_way():
    seen = set()
    for path in SOURCE.rglob("*.py"):
        mine = path.relative_to(SOURCE).with_suffix("").parts[0]
        if mine == "__init__":
            continue
        seen.add(mine)
        for module in imported(path):
            parts = module.split(".")
            if parts[0] == "elephant_nn" and len(parts) > 1:
                assert HEIGHT[parts[1]] <= HEIGHT[mine], f"{path.name} imports {module}"
    assert seen == set(HEIGHT)


def test_every_form_of_import_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path / "elephant_nn")
    path = tmp_path / "elephant_nn" / "nn" / "x.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "import elephant_nn.cli\nfrom elephant_nn import learn, runs\nfrom ..report import page\n"
        "def f():\n    from elephant_nn.experiments import api\n"
    )
    assert list(imported(path)) == [
        "elephant_nn.cli",
        "elephant_nn.streams.stream",
        "elephant_nn.runs",
        "elephant_nn.report",
        "elephant_nn.experiments",
    ]


@pytest.mark.parametrize(("code", "printed"), CODE)
def test_code_in_the_documents_runs_and_prints_what_they_say(
    code, printed, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    exec(compile(code, "document", "exec"), {"__name__": "document"})
    if printed is not None:
        words = capsys.readouterr().out.split()
        for ours, documented in zip(words, printed.split(), strict=True):
            assert ours == documented or float(ours) == pytest.approx(float(documented), rel=1e-3)


def test_links_between_documents_lead_somewhere():
    for path in DOCUMENTS:
        for target in re.findall(r"\]\((?!http|#)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


@pytest.mark.parametrize("name", sorted(path.parent.name for path in KEPT.glob("*/rows.parquet")))
def test_published_tables_follow_from_the_published_rows(name):
    rows = publishing.published_rows(KEPT, name)
    texts = (comparison(TABLES[name], rows), chosen_settings(TABLES[name], rows))
    text = "\n\n".join(as_markdown(text) for text in texts if text.lines)
    assert (KEPT / name / "tables.md").read_text() == f"{text}\n"


def test_only_incomplete_tables_lack_results():
    lacking = {name for name in TABLES if not (KEPT / name / "rows.parquet").exists()}
    assert lacking <= INCOMPLETE


def test_documents_quote_the_published_tables(tmp_path):
    (tmp_path / "docs").mkdir()
    quoted = set()
    for path in DOCUMENTS:
        copy = tmp_path / path.relative_to(ROOT)
        copy.write_text(path.read_text())
        quoted |= {match[1] for match in publishing._MARK.finditer(path.read_text())}
    publishing.quote(tmp_path, KEPT)
    for path in DOCUMENTS:
        ours = (tmp_path / path.relative_to(ROOT)).read_text()
        assert ours == path.read_text(), f"{path.name}: run elephant results"
    assert {"split-digits", "split-mnist", "split-cifar10", "rl-mountain-car"} <= quoted


def test_a_document_that_quotes_something_else_is_put_right(tmp_path):
    (tmp_path / "README.md").write_text("a\n<!-- sine -->\nold\n<!-- /sine -->\nb\n")
    publishing.quote(tmp_path, KEPT)
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("a\n<!-- sine -->\n\n**Streaming regression")
    assert text.endswith("<!-- /sine -->\nb\n")
