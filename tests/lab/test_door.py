"""Which column a request goes to, and what its server gets to see."""

from __future__ import annotations

import pytest

from tests.lab.door import direct

COLUMNS = {"durable": None, "naive": None}


def test_a_request_below_a_column_goes_there_without_the_columns_name() -> None:
    column, head = direct(
        b"GET /durable/v1/sessions/x?until=follow HTTP/1.1\r\nHost: here\r\n\r\n", COLUMNS
    )

    assert column == "durable"
    assert head == (
        b"GET /v1/sessions/x?until=follow HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
    )


@pytest.mark.parametrize("path", [b"/", b"/durable", b"/api/look", b"/lab/durable/x", b"/other/x"])
def test_every_other_request_goes_to_the_page(path: bytes) -> None:
    column, head = direct(b"GET " + path + b" HTTP/1.1\r\nHost: here\r\n\r\n", COLUMNS)

    assert column is None
    assert head.startswith(b"GET " + path + b" HTTP/1.1\r\n")


def test_a_connection_carries_one_request_whatever_the_browser_asks() -> None:
    _, head = direct(
        b"GET / HTTP/1.1\r\nConnection: keep-alive\r\nkeep-alive: 5\r\nA: b\r\n\r\n", COLUMNS
    )

    assert head == b"GET / HTTP/1.1\r\nA: b\r\nConnection: close\r\n\r\n"


def test_what_is_no_request_is_refused() -> None:
    with pytest.raises(ValueError, match="unpack"):
        direct(b"hello\r\n\r\n", COLUMNS)
