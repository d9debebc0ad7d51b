"""Sizes that the user gives, although they are the default."""

from fablint.model.registry import KERNELS
from fablint.model.registry.option_values import format_bytes
from fablint.plan.rows.row_text import parse_row


def test_sizes_that_the_user_gave_are_written_although_they_are_the_default():
    """The engine drops default sizes that do not fit into memory, and refuses those that were given."""
    assert parse_row(["allreduce"]).text == "allreduce"
    sizes = KERNELS["allreduce"].default_sizes
    text = f"allreduce --sizes {format_bytes(sizes[0])}:{format_bytes(sizes[-1])}"
    assert parse_row(parse_row(text.split()).text.split()).text == text
