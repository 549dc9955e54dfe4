"""The tables of `--log-stats`."""

from pathlib import Path

from omni_runtime.statistics.table import request_table, table
from tests.layout.source import CHECKOUT
from tests.omni_runtime.statistics.examples import request, stage, worked_example

GOLDEN = Path(__file__).with_name("worked-example.txt")


def test_the_worked_example_of_the_source_is_printed_figure_by_figure() -> None:
    assert request_table(worked_example()) + "\n" == GOLDEN.read_text()


def test_every_figure_of_the_source_is_in_the_golden_text() -> None:
    said = GOLDEN.read_text()
    for figure in (
        *("41,299.190", "41,299.133", "5,202", "125.959", "245.895", "138,089.939", "525,525"),
        *("10,192.289", "30,541.409", "207.496", "9,910.007", "30,379.198", "160.745"),
        *("256.158", "0.491", "0.000", "4,860", "4,826", "4,384", "38", "274", "67", "275"),
        *("109,277.349", "78.701", "111.865", "2.015", "28,812.591", "18.790", "31.706", "2.819"),
    ):
        assert f" {figure} |" in said, figure


def test_the_page_shows_the_same_table() -> None:
    assert GOLDEN.read_text() in (CHECKOUT / "docs" / "metrics.md").read_text()


def test_pictures_have_rows_of_their_own_and_audio_has_none_without_audio() -> None:
    said = request_table(request((stage("vae", image_num=1, resolution="64x32"),)))
    assert "image_num" in said and "64x32" in said
    assert "audio" not in said


def test_a_model_of_one_stage_has_no_table_of_edges() -> None:
    assert "TransferEdgeStats" not in request_table(request((stage(),)))


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table("T", ["a", "long-name"], {"x": [1234567, "y"]}).splitlines() == [
        "[T]",
        "+-------+-----------+-----------+",
        "| Field |         a | long-name |",
        "+-------+-----------+-----------+",
        "| x     | 1,234,567 |         y |",
        "+-------+-----------+-----------+",
    ]
