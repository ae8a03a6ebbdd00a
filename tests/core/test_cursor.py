"""The cursor's grammar: one position, one spelling; nothing that an edge could not have sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.core.cursor import START, Cursor
from edge.core.errors import InvalidCursor

MALFORMED = {
    "word": "abc",
    "seq only": "57",
    "no seq": "1-",
    "no epoch": "-1",
    "three parts": "1-2-3",
    "epoch with a leading zero": "01-2",
    "seq with a leading zero": "1-02",
    "plus": "+1-2",
    "minus": "1--2",
    "space before": " 1-2",
    "space after": "1-2 ",
    "full-width digits": "\uff11-\uff12",
    "arabic digits": "\u0661-\u0662",
    "superscript digit": "1-\u00b2",
    "en dash": "1\u20132",
    "400 characters": "1" * 200 + "-" + "1" * 199,
    "exponent": "1e3-2",
    "hexadecimal": "0x1-2",
    "underscore": "1_0-2",
    "fraction": "1.0-2",
    "line feed after": "1-2\n",
    "carriage return": "1-2\r",
    "NUL": "1-2\x00",
    "empty": "",
    "dash": "-",
    "epoch of ten digits": "1000000000-1",
    "seq of thirteen digits": "1-1000000000000",
}


@pytest.mark.proves("S13", "T36", "P-SSE-2")
@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_no_edge_could_have_sent_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor) as refused:
        Cursor.parse(text)
    assert not text or text not in str(refused.value), "nobody's input is echoed"


@pytest.mark.parametrize("text", ["0-0", "0-37", "1-57", "999999999-999999999999"])
def test_an_id_is_read_back_as_it_was_sent(text: str) -> None:
    assert str(Cursor.parse(text)) == text


@given(epoch=st.integers(0, 10**9 - 1), seq=st.integers(0, 10**12 - 1))
def test_every_position_survives_the_trip(epoch: int, seq: int) -> None:
    assert Cursor.parse(str(Cursor(epoch, seq))) == Cursor(epoch, seq)


@given(st.text(alphabet="0123456789-", max_size=16))
def test_no_two_spellings_name_one_position(text: str) -> None:
    try:
        cursor = Cursor.parse(text)
    except InvalidCursor:
        return
    assert str(cursor) == text


@pytest.mark.proves("S19")
def test_a_later_epoch_is_ahead_of_every_seq_of_an_earlier_one() -> None:
    assert Cursor(2, 1) > Cursor(1, 999) > Cursor(1, 998) > START
