import dataclasses
import json
import re

import numpy as np
import polars as pl
import pytest

from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.report.figures import draw_figures
from elephant_nn.report.page import write_page
from elephant_nn.report.statistics import best_setting, ranking, summarise, table
from elephant_nn.report.tables import FORMATS, SWEEP_FORMATS
from elephant_nn.runs.store import rows_folder, write_rows

SINE = EXPERIMENTS["sine"]
EMLP = next(entry for entry in SINE.entries if entry.method == "emlp")


def row(entry, seed, mse, settings=None, **more):
    (cell,) = SINE.cells(entry, [settings or entry.settings], [seed])
    return {
        "cell": cell.id,
        "experiment": "sine",
        "method": entry.method,
        "hyper": json.dumps(cell.hyper, sort_keys=True),
        "seed": seed,
        "status": "ok" if mse is not None else "diverged",
        "versions": "elephant-nn 0, jax 0",
        "passes": 1,
        "task_boundary": False,
        "mse": mse,
        "mse_curve": [1.0, mse or 1.0],
        **more,
    }


def frame(*rows):
    return pl.DataFrame(rows, infer_schema_length=None)


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


def test_the_table_takes_reported_seeds_and_tuned_settings_only():
    other = {**EMLP.settings, "lr": 3e-3}
    rows = frame(row(EMLP, 0, 0.1), row(EMLP, 1000, 9.0), row(EMLP, 1, 9.0, other))
    (only,) = table(SINE, rows)
    assert (only.ours.mean, only.ours.runs) == (0.1, 1)
    assert only.paper == (0.0081, 0.0009)


def test_json_has_the_promised_keys():
    (record,) = json.loads(FORMATS["json"](SINE, frame(row(EMLP, 0, 0.1))))
    promised = (
        "experiment method neurons buffer metric mean se runs paper_mean paper_se passes "
        "task_boundary hyper"
    )
    assert set(promised.split()) <= set(record)
    assert record["hyper"] == dict(EMLP.settings)
    assert (record["neurons"], record["paper_mean"]) == (1000, 0.0081)


def test_every_format_says_the_number():
    rows = frame(row(EMLP, 0, 0.125), row(EMLP, 1, 0.375))
    for name, show in FORMATS.items():
        assert "0.25" in show(SINE, rows), name
        assert "0.0081" in show(SINE, rows), name
    assert FORMATS["csv"](SINE, rows).count("\n") == 1
    assert "| EMLP | 0.2500 ± 0.1250 | 0.0081 ± 0.0009 | 2 |" in FORMATS["markdown"](SINE, rows)


def test_a_narrow_terminal_does_without_the_rules(monkeypatch):
    experiment = dataclasses.replace(SINE, columns=("neurons", "passes", "task_boundary"))
    show = lambda: FORMATS["table"](experiment, frame(row(EMLP, 0, 0.125), row(EMLP, 1, 0.375)))
    monkeypatch.setenv("COLUMNS", "120")
    assert "boundary" in show()
    monkeypatch.setenv("COLUMNS", "72")
    assert "neurons" in show()
    assert "Left out for want of room: passes, task boundary." in show()
    assert "0.2500 ± 0.1250" in show()


GRID = dataclasses.replace(EMLP, grid={"lr": (1e-3, 3e-4, 1e-4)})
SMALL = dataclasses.replace(SINE, entries=(GRID,))
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
    choice = best_setting(frame(*rows), SMALL, GRID)
    assert choice.hyper == SECOND
    assert choice.summary.mean == pytest.approx(0.15)
    assert not choice.coarse


def test_settings_are_compared_on_the_seeds_they_share():
    rows = swept(first=(0.2, 0.2), second=(0.1, 0.2), third=(0.3, 0.3, 0.001))
    choice = best_setting(frame(*rows), SMALL, GRID)
    assert (choice.hyper, choice.summary.runs) == (SECOND, 2)


def test_a_setting_that_diverged_is_not_chosen():
    rows = swept(first=(0.2, 0.2), second=(0.1, None), third=(0.3, 0.3))
    assert best_setting(frame(*rows), SMALL, GRID).hyper == FIRST
    without_a_number = [{**one, "status": "ok"} for one in rows]
    assert best_setting(frame(*without_a_number), SMALL, GRID).hyper == FIRST


def test_nothing_is_chosen_from_part_of_a_grid():
    rows = frame(*swept(first=(0.2,), second=(0.1,)))
    assert best_setting(rows, SMALL, GRID) is None
    assert "2 of 3 settings have runs" in SWEEP_FORMATS["table"](SMALL, rows)


def test_a_coarse_grid_decides_until_the_whole_one_is_complete():
    entry = dataclasses.replace(GRID, coarse={"lr": (1e-3, 3e-4)})
    experiment = dataclasses.replace(SINE, entries=(entry,))
    rows = swept(first=(0.2,), second=(0.1,))
    choice = best_setting(frame(*rows), experiment, entry)
    assert (choice.hyper, choice.coarse) == (SECOND, True)
    assert "2 of 3" in SWEEP_FORMATS["table"](experiment, frame(*rows))
    choice = best_setting(frame(*rows, *swept(third=(0.05,))), experiment, entry)
    assert (choice.hyper, choice.coarse) == (THIRD, False)


def test_settings_tried_besides_the_compared_ones_are_counted():
    entry = dataclasses.replace(GRID, coarse={"lr": (1e-3,)})
    experiment = dataclasses.replace(SINE, entries=(entry,))
    rows = frame(*swept(first=(0.2,), second=(0.1,)))
    assert best_setting(rows, experiment, entry).hyper == FIRST
    assert "1 of 3 (2 tried)" in SWEEP_FORMATS["table"](experiment, rows)


def test_rows_with_guessed_settings_are_marked():
    guessed = dataclasses.replace(EMLP, method="guessed", title="Guessed", guessed=True)
    both = dataclasses.replace(SINE, entries=(EMLP, guessed))
    show = lambda *rows, form="markdown": FORMATS[form](both, frame(*rows))
    assert "*" not in show(row(EMLP, 0, 0.1)).replace("**", "")
    marked = show(row(EMLP, 0, 0.1), row(guessed, 0, 0.2))
    assert "| EMLP |" in marked
    assert "| Guessed * |" in marked
    assert "* The settings of these rows are guesses" in marked
    records = json.loads(show(row(guessed, 0, 0.2), form="json"))
    assert [(record["title"], record["guessed"]) for record in records] == [("Guessed", True)]


def test_finalists_are_compared_on_all_their_seeds():
    lucky = swept(first=(0.2, 0.2, 0.2), second=(0.1, 0.9, 0.9), third=(0.3,))
    choice = best_setting(frame(*lucky), SMALL, GRID)
    assert (choice.hyper, choice.summary.runs) == (FIRST, 3)
    all_diverge = swept(first=(0.2, None, 0.2), second=(0.1, None, 0.1), third=(0.3,))
    assert best_setting(frame(*all_diverge), SMALL, GRID).hyper == THIRD
    best_is_not_there = swept(first=(0.2, 0.2, 0.2), second=(0.1,), third=(0.3,))
    assert best_setting(frame(*best_is_not_there), SMALL, GRID).hyper == SECOND
    larger_sweep_begun = swept(first=(0.2,), second=(0.1, 0.9, 0.9), third=(0.3, 0.0, 0.0))
    choice = best_setting(frame(*larger_sweep_begun), SMALL, GRID)
    assert (choice.hyper, choice.summary.runs) == (SECOND, 3)


def test_seeds_of_some_finalists_do_not_change_who_they_are():
    begun = swept(first=(0.2, 0.2), second=(0.1, 0.9), third=(0.3,))
    names = [hyper for hyper, _ in ranking(frame(*begun), SMALL, GRID)]
    assert names == [SECOND, FIRST, THIRD]


def test_settings_are_chosen_on_data_kept_back_and_the_best_on_the_test_set_is_shown_beside():
    experiment = dataclasses.replace(SMALL, choosing={"held_out": 10}, peeked="test_mse")
    numbers = {0: (0.2, 0.9), 1: (0.1, 0.8), 2: (0.3, 0.7)}
    rows = [
        row(EMLP, 1000, held_out, {**settings, "held_out": 10}, test_mse=test)
        for settings, (held_out, test) in zip(GRID.candidates(), numbers.values(), strict=True)
    ]
    rows += swept(first=(0.001,))  # without the data kept back: must not decide
    choice = best_setting(frame(*rows), experiment, GRID)
    assert choice.hyper == SECOND
    assert choice.peeked.mean == 0.7
    assert "0.7000 (1)" in SWEEP_FORMATS["markdown"](experiment, frame(*rows))


def test_a_metric_that_a_method_lacks_is_not_a_diverged_run():
    summary = summarise(frame(row(EMLP, 0, 0.1), row(EMLP, 1, None)), "forgetting")
    assert (summary.mean, summary.runs, summary.diverged) == (None, 0, 1)


def test_the_sweep_table_shows_both_numbers():
    rows = frame(*swept(first=(0.6,), second=(0.7,), third=(0.5,)), row(EMLP, 0, 0.75, THIRD))
    text = SWEEP_FORMATS["table"](SMALL, rows)
    assert "0.5000 (1)" in text
    assert "0.7500 (1)" in text
    (record,) = json.loads(SWEEP_FORMATS["json"](SMALL, rows))
    assert (record["chosen_mean"], record["mean"], record["paper_mean"]) == (0.5, 0.75, 0.0081)
    assert "0.7500 (1)" in SWEEP_FORMATS["markdown"](SMALL, rows)
    assert ",0.75," in SWEEP_FORMATS["csv"](SMALL, rows)


def pictured(entry):
    stages = [[0.0] * 50] * 3
    return row(entry, 0, 0.1, {**entry.settings, "stages": 1}, kernel=stages, learned=stages)


def test_figures_are_png_and_svg_and_the_same_bytes_each_time(tmp_path):
    rows = frame(row(EMLP, 0, 0.1), row(EMLP, 1, 0.2), pictured(EMLP))
    for folder in ("a", "b"):
        drawn = draw_figures("sine", rows, tmp_path / folder)
        assert [figure.png.name for figure in drawn] == ["sine-stages.png", "sine-curves.png"]
        assert all(figure.png.read_bytes()[:4] == b"\x89PNG" for figure in drawn)
        assert all("<svg" in figure.svg.read_text() for figure in drawn)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_no_rows_no_figures(tmp_path):
    assert draw_figures("sine", pl.DataFrame(), tmp_path) == []


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
    write_rows(folder, "more", [row(entry, 1, 0.1) for entry in SINE.entries])
    assert "<pre>elephant reproduce sine</pre>" in write_page(tmp_path).read_text()


def test_an_empty_store_still_gives_a_page(tmp_path):
    assert "The store is empty" in write_page(tmp_path).read_text()
