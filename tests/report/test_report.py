import dataclasses
import json
import re

import numpy as np
import polars as pl
import pytest
from made_up import frame, made_up

from elephant_nn.experiments.choosing import choose, rank, write_choices
from elephant_nn.experiments.spec import read_choices, with_choices
from elephant_nn.experiments.summaries import summarise, summarise_table
from elephant_nn.experiments.tables import TABLES
from elephant_nn.files import StorageError
from elephant_nn.report.figures import draw_figures
from elephant_nn.report.page import write_page
from elephant_nn.report.tables import number, render
from elephant_nn.runs.store import rows_folder, write_rows

SINE = TABLES["sine"]
EMLP = next(row for row in SINE.rows if row.method == "emlp")
FORMATS = ("table", "markdown", "json", "csv")


def row(entry, seed, mse, settings=None, **more):
    status = "diverged" if mse is None else "ok"
    curve = None if mse is None else [1.0, mse]
    columns = {"passes": 1, "task_boundary": False, "mse": mse, "mse_curve": curve, **more}
    return made_up(SINE, entry, seed, settings, status=status, **columns)


def test_mean_and_standard_error_by_hand():
    rows = frame(*(row(EMLP, seed, mse) for seed, mse in enumerate((1.0, 2.0, 3.0, 6.0))))
    summary = summarise(rows, "mse")
    assert summary.mean == pytest.approx(3.0)
    assert summary.se == pytest.approx(np.sqrt((4 + 1 + 0 + 9) / 3) / 2)
    assert (summary.runs, summary.diverged) == (4, 0)


def test_diverged_runs_are_counted_and_left_out_of_the_mean():
    summary = summarise(frame(row(EMLP, 0, 1.0), row(EMLP, 1, None)), "mse")
    assert (summary.mean, summary.se, summary.runs, summary.diverged) == (1.0, None, 1, 1)
    odd = frame(row(EMLP, 0, 1.0), {**row(EMLP, 1, 5.0), "status": "diverged"})
    assert summarise(odd, "mse").mean == 1.0


def test_the_table_takes_reported_seeds_and_chosen_settings_only():
    other = {**EMLP.settings, "lr": 3e-3}
    rows = frame(row(EMLP, 0, 0.1), row(EMLP, 1000, 9.0), row(EMLP, 1, 9.0, other))
    (only,) = summarise_table(SINE, rows)
    assert (only.ours.mean, only.ours.runs) == (0.1, 1)
    assert only.paper == (0.0081, 0.0009)


def test_json_has_the_promised_keys():
    (record,) = json.loads(render(SINE, frame(row(EMLP, 0, 0.1)), "json"))
    promised = (
        "experiment method neurons buffer metric mean se runs paper_mean paper_se passes "
        "task_boundary hyper"
    )
    assert set(promised.split()) <= set(record)
    assert record["hyper"] == dict(EMLP.settings)
    assert (record["neurons"], record["paper_mean"]) == (1000, 0.0081)


@pytest.mark.parametrize(
    ("mean", "se", "text"),
    [
        (None, None, "-"),
        (0.0, None, "0.000"),
        (0.0123, 0.0005, "0.012 ± 0.001"),
        (2.4e-6, 6.1e-7, "2.4e-06 ± 6.1e-07"),
        (-3e-5, None, "-3.0e-05"),
    ],
)
def test_a_number_too_small_for_its_digits_has_an_exponent(mean, se, text):
    assert number(mean, se, 3) == text


def test_every_format_says_the_number():
    rows = frame(row(EMLP, 0, 0.125), row(EMLP, 1, 0.375))
    for form in FORMATS:
        assert "0.25" in render(SINE, rows, form), form
        assert "0.0081" in render(SINE, rows, form), form
    assert render(SINE, rows, "csv").count("\n") == 1
    assert "| EMLP | 0.2500 ± 0.1250 | 0.0081 ± 0.0009 | 2 |" in render(SINE, rows, "markdown")


def test_a_narrow_terminal_marks_rows_whose_rules_it_hides(monkeypatch):
    table = dataclasses.replace(SINE, columns=("neurons", "passes", "class_statistics"))
    relu = SINE.rows[0]
    rows = frame(
        row(EMLP, 0, 0.125, class_statistics=True),
        row(EMLP, 1, 0.375, class_statistics=True),
        row(relu, 0, 0.5, class_statistics=False, passes=20),
    )
    monkeypatch.setenv("COLUMNS", "120")
    wide = render(table, rows, "table")
    assert "statistics" in wide
    assert "[" not in wide
    monkeypatch.setenv("COLUMNS", "72")
    narrow = render(table, rows, "table")
    flat = " ".join(narrow.split())
    assert "Hidden: the terminal is too narrow for passes, class statistics." in flat
    assert "[c]: keeps class statistics." in flat
    assert "EMLP [c]" in narrow
    assert "MLP (relu) [p]" in narrow
    assert "0.2500 ± 0.1250" in narrow  # numbers do not wrap


GRID = dataclasses.replace(EMLP, grid={"lr": (1e-3, 3e-4, 1e-4)})
SMALL = dataclasses.replace(SINE, rows=(GRID,))
FIRST, SECOND, THIRD = GRID.candidates()


def swept(**runs):
    """Rows on the choosing seeds: first=(0.1, None) is two runs, the second diverged."""
    settings = {"first": FIRST, "second": SECOND, "third": THIRD}
    return [
        row(EMLP, 1000 + i, mse, settings[name])
        for name, values in runs.items()
        for i, mse in enumerate(values)
    ]


def test_the_choice_is_by_the_choosing_seeds():
    rows = swept(first=(0.2, 0.2), second=(0.1, 0.2), third=(0.3, 0.3))
    rows += [row(EMLP, 0, 0.001, FIRST)]  # a reported seed must not decide
    choice = choose(frame(*rows), SMALL, GRID)
    assert choice.hyper == SECOND
    assert choice.summary.mean == pytest.approx(0.15)
    assert not choice.coarse


def test_settings_are_compared_on_the_seeds_they_share():
    rows = swept(first=(0.2, 0.2), second=(0.1, 0.2), third=(0.3, 0.3, 0.001))
    choice = choose(frame(*rows), SMALL, GRID)
    assert (choice.hyper, choice.summary.runs) == (SECOND, 2)


def test_a_setting_that_diverged_is_not_chosen():
    rows = swept(first=(0.2, 0.2), second=(0.1, None), third=(0.3, 0.3))
    assert choose(frame(*rows), SMALL, GRID).hyper == FIRST
    without_a_number = [{**one, "status": "ok"} for one in rows]
    assert choose(frame(*without_a_number), SMALL, GRID).hyper == FIRST


def test_nothing_is_chosen_from_part_of_a_grid():
    rows = frame(*swept(first=(0.2,), second=(0.1,)))
    assert choose(rows, SMALL, GRID) is None
    assert "2 of 3 settings have runs" in render(SMALL, rows, "table", sweep=True)


def test_a_coarse_grid_decides_until_the_whole_one_is_complete():
    entry = dataclasses.replace(GRID, coarse={"lr": (1e-3, 3e-4)})
    table = dataclasses.replace(SINE, rows=(entry,))
    rows = swept(first=(0.2,), second=(0.1,))
    choice = choose(frame(*rows), table, entry)
    assert (choice.hyper, choice.coarse) == (SECOND, True)
    assert "2 of 3" in render(table, frame(*rows), "table", sweep=True)
    choice = choose(frame(*rows, *swept(third=(0.05,))), table, entry)
    assert (choice.hyper, choice.coarse) == (THIRD, False)


def test_settings_tried_besides_the_compared_ones_are_counted():
    entry = dataclasses.replace(GRID, coarse={"lr": (1e-3,)})
    table = dataclasses.replace(SINE, rows=(entry,))
    rows = frame(*swept(first=(0.2,), second=(0.1,)))
    assert choose(rows, table, entry).hyper == FIRST
    assert "1 of 3 (2 tried)" in render(table, rows, "table", sweep=True)


def test_rows_with_guessed_settings_are_marked():
    guessed = dataclasses.replace(EMLP, method="guessed", title="Guessed", chosen=False)
    both = dataclasses.replace(SINE, rows=(EMLP, guessed))
    show = lambda *rows, form="markdown": render(both, frame(*rows), form)
    assert "*" not in show(row(EMLP, 0, 0.1)).replace("**", "")
    marked = show(row(EMLP, 0, 0.1), row(guessed, 0, 0.2))
    assert "| EMLP |" in marked
    assert "| Guessed * |" in marked
    assert "* The settings of these rows are guesses" in marked
    records = json.loads(show(row(guessed, 0, 0.2), form="json"))
    assert [(record["title"], record["guessed"]) for record in records] == [("Guessed", True)]


def test_choices_are_written_with_their_evidence_and_read_back(tmp_path):
    rows = frame(*swept(first=(0.2, 0.2), second=(0.1, 0.2), third=(0.3, 0.3)))
    path = write_choices(tmp_path / "sine.json", SMALL, rows)
    (line,) = path.read_text().splitlines()[1:-1]
    entry = json.loads(line)
    assert entry["settings"] == {"lr": SECOND["lr"]}
    assert (entry["mse"], entry["seeds"], entry["compared"], entry["of"]) == (0.15, 2, 3, 3)
    unsettled = dataclasses.replace(GRID, settings={**GRID.settings, "lr": 9.0}, chosen=False)
    (settled,) = with_choices([unsettled], read_choices(path))
    assert settled.settings == SECOND
    assert settled.chosen
    assert not settled.guessed
    write_choices(path, dataclasses.replace(SMALL, rows=(GRID, EMLP)), frame(row(EMLP, 0, 0.1)))
    assert read_choices(path)[GRID.key] == entry  # what was not swept here stays


def test_revisions_are_never_averaged():
    rows = frame(row(EMLP, 0, 0.1), row(dataclasses.replace(EMLP, revision=1), 1, 0.5))
    (old,) = summarise_table(SINE, rows)
    assert (old.ours.mean, old.ours.runs) == (0.1, 1)
    raised = dataclasses.replace(SINE, revision=1, rows=(EMLP,))
    (new,) = summarise_table(raised, rows)
    assert (new.ours.mean, new.ours.runs) == (0.5, 1)


def test_finalists_are_compared_on_all_their_seeds():
    lucky = swept(first=(0.2, 0.2, 0.2), second=(0.1, 0.9, 0.9), third=(0.3,))
    choice = choose(frame(*lucky), SMALL, GRID)
    assert (choice.hyper, choice.summary.runs) == (FIRST, 3)
    all_diverge = swept(first=(0.2, None, 0.2), second=(0.1, None, 0.1), third=(0.3,))
    assert choose(frame(*all_diverge), SMALL, GRID).hyper == THIRD
    best_is_not_there = swept(first=(0.2, 0.2, 0.2), second=(0.1,), third=(0.3,))
    assert choose(frame(*best_is_not_there), SMALL, GRID).hyper == SECOND
    larger_sweep_begun = swept(first=(0.2,), second=(0.1, 0.9, 0.9), third=(0.3, 0.0, 0.0))
    choice = choose(frame(*larger_sweep_begun), SMALL, GRID)
    assert (choice.hyper, choice.summary.runs) == (SECOND, 3)


def test_seeds_of_some_finalists_do_not_change_who_they_are():
    begun = swept(first=(0.2, 0.2), second=(0.1, 0.9), third=(0.3,))
    names = [hyper for hyper, _ in rank(frame(*begun), SMALL, GRID)]
    assert names == [SECOND, FIRST, THIRD]


def test_settings_are_chosen_on_held_out_data_and_the_best_on_the_test_set_is_shown_beside():
    table = dataclasses.replace(SMALL, choosing={"held_out": 10}, test_metric="test_mse")
    numbers = {0: (0.2, 0.9), 1: (0.1, 0.8), 2: (0.3, 0.7)}
    rows = [
        row(EMLP, 1000, held_out, {**settings, "held_out": 10}, test_mse=test)
        for settings, (held_out, test) in zip(GRID.candidates(), numbers.values(), strict=True)
    ]
    rows += swept(first=(0.001,))  # without held-out data: must not decide
    choice = choose(frame(*rows), table, GRID)
    assert choice.hyper == SECOND
    assert choice.on_test.mean == 0.7
    assert "0.7000 (1)" in render(table, frame(*rows), "markdown", sweep=True)


def test_a_metric_that_a_method_lacks_is_not_a_diverged_run():
    summary = summarise(frame(row(EMLP, 0, 0.1), row(EMLP, 1, None)), "forgetting")
    assert (summary.mean, summary.runs, summary.diverged) == (None, 0, 1)


def test_the_sweep_table_shows_both_numbers():
    rows = frame(*swept(first=(0.6,), second=(0.7,), third=(0.5,)), row(EMLP, 0, 0.75, THIRD))
    text = render(SMALL, rows, "table", sweep=True)
    assert "0.5000 (1)" in text
    assert "0.7500 (1)" in text
    (record,) = json.loads(render(SMALL, rows, "json", sweep=True))
    assert (record["chosen_mean"], record["mean"], record["paper_mean"]) == (0.5, 0.75, 0.0081)
    assert "0.7500 (1)" in render(SMALL, rows, "markdown", sweep=True)
    assert ",0.75," in render(SMALL, rows, "csv", sweep=True)


def pictured(entry):
    stages = [[0.0] * 50] * 3
    return row(entry, 0, 0.1, {**entry.settings, "stages": 1}, kernel=stages, learned=stages)


def test_figures_are_png_and_svg_and_the_same_bytes_each_time(tmp_path):
    rows = frame(row(EMLP, 0, 0.1), row(EMLP, 1, 0.2), pictured(EMLP))
    for folder in ("a", "b"):
        drawn = draw_figures(SINE, rows, tmp_path / folder)
        assert [figure.png.name for figure in drawn] == ["sine-stages.png", "sine-curves.png"]
        assert all(figure.png.read_bytes()[:4] == b"\x89PNG" for figure in drawn)
        assert all("<svg" in figure.svg.read_text() for figure in drawn)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_no_rows_no_figures(tmp_path):
    assert draw_figures(SINE, pl.DataFrame(), tmp_path) == []


def test_the_page_stands_alone(tmp_path):
    write_rows(rows_folder(tmp_path, "sine"), "s", [row(EMLP, 0, 0.1)])
    page = write_page(tmp_path).read_text()
    assert "0.1000" in page
    assert "0.0081 ± 0.0009" in page
    assert "elephant reproduce sine" in page
    assert 'name="viewport"' in page
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)  # nothing is fetched


def test_the_page_names_the_commands_that_give_it(tmp_path):
    folder = rows_folder(tmp_path, "sine")
    write_rows(folder, "some", [row(EMLP, 0, 0.1)])
    assert "<pre>elephant reproduce sine --methods emlp</pre>" in write_page(tmp_path).read_text()
    write_rows(folder, "more", [row(entry, 1, 0.1) for entry in SINE.rows])
    assert "<pre>elephant reproduce sine</pre>" in write_page(tmp_path).read_text()


def test_a_page_of_nothing_is_refused(tmp_path):
    with pytest.raises(StorageError, match=r"there are no results in .*; run: elephant reproduce"):
        write_page(tmp_path)
    assert not list(tmp_path.iterdir())


def test_diverged_runs_do_not_harm_figures_or_page(tmp_path):
    pictured = {**EMLP.settings, "stages": 1}
    diverged = [row(EMLP, 0, None), row(EMLP, 0, None, pictured, kernel=None, learned=None)]
    rows = [*diverged, row(EMLP, 1, 0.2), row(SINE.rows[0], 0, None)]
    assert [d.png.stem for d in draw_figures(SINE, frame(*rows), tmp_path)] == ["sine-curves"]
    assert draw_figures(SINE, frame(*diverged), tmp_path) == []
    write_rows(rows_folder(tmp_path, "sine"), "s", rows)
    assert "1 diverged" in write_page(tmp_path).read_text()


def test_rows_of_a_user_are_drawn_beside_ours(tmp_path):
    mine = dataclasses.replace(EMLP, method="mine", title="Mine", line=None)
    table = dataclasses.replace(SINE, rows=(*SINE.rows, mine))
    rows = frame(row(EMLP, 0, 0.1), row(mine, 0, 0.3))
    (_, drawn) = (None, draw_figures(table, rows, tmp_path))
    assert "Mine" in drawn[-1].svg.read_text()
