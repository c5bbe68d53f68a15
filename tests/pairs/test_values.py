"""Cells of columns: what each is read as, worked by hand in several languages, and how two are compared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramvec.jobs.pairs import cells
from gramvec.jobs.pairs.cells import CODE, DATE, EMAIL, EMPTY, NUMBER, PHONE, TEXT
from gramvec.jobs.pairs.levels import ALIKE, CONTRADICTS, DIFFERENT, EQUAL, MISSING, NEARLY, compare_values
from gramvec.jobs.pairs.values import read_column

KINDS = {getattr(cells, name): name for name in ("EMPTY", "NUMBER", "DATE", "PHONE", "EMAIL", "CODE", "TEXT")}
LEVELS = {
    CONTRADICTS: "contradicts", DIFFERENT: "different", ALIKE: "alike", NEARLY: "nearly", EQUAL: "equal",
    MISSING: "missing",
}  # fmt: skip


def kinds_of(*texts: str) -> list[str]:
    values = read_column(texts)
    return [KINDS[kind] for kind in values.kinds[values.of_row].tolist()]


def level_of(one: str, other: str, beside: tuple[str, ...] = ()) -> str:
    """The level of two cells, each in a column of its own, or of the same others."""
    left, right = read_column([one, *beside]), read_column([other, *beside])
    first = np.zeros(1, np.int64)
    found, turned = compare_values(left, right, first, first), compare_values(right, left, first, first)
    assert found.dtype == np.uint8 and found.tolist() == turned.tolist()
    return LEVELS[found[0]]


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (EMPTY, ["", " ", "N/A", "n/a", "NA", "unknown", "null", "None", "-", "?", "TBD", "#N/A", "keine Angabe",
                 "unbekannt", "néant", "desconocido", "não informado", "sconosciuto", "onbekend", "okänt",
                 "brak danych",
                 "неизвестно", "нет данных", "άγνωστο", "不明", "미상", "غير معروف", "…", "—"]),
        (NUMBER, ["2.5 mg", "2,5 mg", "-20", "−20 °C", "1/2 in", "1 1/2", "½", "4.7k", "1,234.50", "1.234,50",
                  "1 234,50",
                  "1'234.50", "50%", "$5.00", "5 €", "EUR 5", "16GB", "1.5e-3", "6 ft", "5\"", "3 кг", "Rs. 500",
                  "2 fl oz"]),
        (DATE, ["2020-01-05", "05.01.2020", "5/1/2020", "5 Jan 2020", "January 5, 2020", "5. März 2020", "5 août 2020",
                "5 de enero de 2020", "5 stycznia 2020", "5 января 2020 г.", "2020年1月5日", "2020년 1월 5일",
                "Jan 2020",
                "2020-01-05T10:30:00Z", "05-JAN-20", "1999", "01/2020", "5 Ιανουαρίου 2020"]),
        (PHONE, ["+49 30 901820", "(0781)-941181", "+34976 77 98 38", "020 7946 0958", "312-555-0142",
                 "Tel. 030/901820",
                 "+1 (312) 555-0142 x12"]),
        (EMAIL, ["jo@example.com", "Jo.Smith+x@Mail.Example.org", "mailto:jo@example.com"]),
        (CODE, ["INV-1001", "SW1A 1AA", "9423 OC", "14A", "B0007TXQGE", "08977", "MX-100/2"]),
        (TEXT, ["Jo Smith", "12 Main Street", "No 7", "A+", "東京", "x" * 70, "1" * 70, "Rue Verte 90"]),
    ],
)  # fmt: skip
def test_what_a_cell_alone_is(kind: int, texts: list[str]) -> None:
    assert {text: kinds_of(text)[0] for text in texts} == {text: KINDS[kind] for text in texts}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # NA is Namibia among codes, and nothing among numbers and names; so is a dash.
        (["NA", "DE", "FR", "IT"], "CODE-LIKE"), (["NA", "5.5", "6.5", "7"], "EMPTY"), (["-", "5.5", "6"], "EMPTY"),
        (["None", "Smith", "Jones", "Brown", "Miller"], "TEXT"), (["None", "+49 30 901820", "+49 30 901821"], "EMPTY"),
        (["none", "none", "none", "red", "blue", "green", "white"], "EMPTY"),
        # + and - are results of tests.
        (["-", "+", "+", "-"], "TEXT"),
        # Eight digits are days among days, else a code; four are years among years.
        (["19990101", "1998-02-03", "1997-02-03"], "DATE"), (["19991399", "12345678", "99345678"], "CODE"),
        (["1999", "2001", "1987"], "DATE"), (["1999", "12", "130000"], "NUMBER"),
        # Codes have zeros in front, or are as long.
        (["08977", "33873", "12345"], "CODE"), (["5", "12", "130"], "NUMBER"), (["12345-6789", "12345",
        "54321"], "CODE"),
        # Digits alone are phones among phones.
        (["976779838", "+34 976 779 830", "+34 976 779 831"], "PHONE"), (["1 234 567", "12.5", "13.5", "14"], "NUMBER"),
        # Letters are units among units, and postcodes or flats among codes.
        (["1234 GB", "1234 AB", "4321 XY"], "CODE"), (["1234 GB", "16 GB"], "NUMBER"), (["14g", "14a", "12b"], "CODE"),
        (["14g", "500 mg", "1.5 kg"], "NUMBER"),
    ],
)  # fmt: skip
def test_a_column_decides_what_its_cells_are(texts: list[str], expected: str) -> None:
    assert kinds_of(*texts)[0] == ("TEXT" if expected == "CODE-LIKE" else expected)


def test_a_column_decides_how_numbers_and_dates_are_written() -> None:
    def numbers(*texts: str) -> list[float]:
        values = read_column(texts)
        return [float(values.numbers[row]) for row in values.of_row]

    def days(*texts: str) -> list[int]:
        values = read_column(texts)
        return [int(values.days[row]) for row in values.of_row]

    assert numbers("1.234", "12,50", "3,5") == [1234, 12.5, 3.5]
    assert numbers("1.234", "12.50", "3.5") == [1.234, 12.5, 3.5]
    assert numbers("1,234", "12.50") == [1234, 12.5]
    assert numbers("1,234", "12,5") == [1.234, 12.5]
    assert days("01/02/2020", "25/12/2020") == [20200201, 20201225]
    assert days("01/02/2020", "12/25/2020") == [20200102, 20201225]
    # One that has no such order is read in the other.
    assert days("12/25/2020", "25/12/2020", "25/11/2020") == [20201225, 20201225, 20201125]


@pytest.mark.parametrize(
    ("one", "other", "level"),
    [
        # Numbers: point, sign, fraction and unit count; how they are written does not.
        ("2.5 mg", "25 mg", "contradicts"), ("4.7k", "47k", "contradicts"), ("-20 C", "20 C", "contradicts"),
        ("1/2 in", "1.2 in", "contradicts"), ("0.5 mg", "5 mg", "contradicts"), ("0.25", "25", "contradicts"),
        ("2.5mg", "2.50 mg", "equal"), ("1234.5", "1234.50", "equal"), ("1.234,50", "1234.50", "equal"),
        ("1 234,50 €", "€1,234.50", "equal"), ("1.5", "1.50", "equal"), ("0.5 g", "500 mg", "equal"),
        ("1000 ml", "1 l", "equal"), ("6 ft", "72 in", "equal"), ("3 meters", "3m", "equal"),
        ("16 GB", "16gb", "equal"),
        ("½ in", "0.5\"", "equal"), ("16 GB", "16 MB", "contradicts"), ("5 mg", "5 ml", "different"),
        ("$5", "€5", "different"), ("40 mg", "40", "nearly"), ("40 mg", "80", "different"),
        ("3.14159", "3.14", "nearly"), ("1999.99", "2000", "nearly"), ("7", "7.5", "contradicts"),
        ("2 mg", "2.4 mg", "contradicts"), ("1.5e3", "1500", "equal"),
        # Dates.
        ("5 Jan 2020", "2020-01-05", "equal"), ("05.01.2020", "2020年1月5日", "equal"),
        ("1980-02-01", "1980-01-02", "nearly"), ("1980-02-01", "1980-02-11", "nearly"),
        ("1980-02-12", "1980-02-21", "nearly"), ("1980-02-01", "1975-11-23", "contradicts"),
        ("2020", "5 Jan 2020", "nearly"), ("Jan 2020", "5 Jan 2020", "nearly"),
        ("Feb 2020", "5 Jan 2020", "contradicts"),
        ("1999", "2000", "alike"), ("1853", "1890", "contradicts"), ("2004-04-13", "1943-08-16", "contradicts"),
        ("2022-02-28", "2022-03-01", "alike"), ("2021-12-30", "2022-01-06", "alike"),
        ("2022-03-28", "2022-04-05", "contradicts"),
        # Phones.
        ("+34976 77 98 38", "976779838", "equal"), ("(0781)-941181", "+31 781 941181", "equal"),
        ("054528968", "+39 54 528968", "equal"), ("(312) 555-0142", "312.555.0142", "equal"),
        ("+44 (0)20 7946 0958", "020 7946 0958", "equal"), ("(312) 555-0142", "555-0142", "equal"),
        ("(312) 555-0142", "(773) 555-0142", "nearly"), ("(312) 555-0142", "(312) 555-0143", "alike"),
        ("(312) 555-0142", "(312) 555-0124", "alike"), ("(312) 555-0142", "(312) 998-7731", "different"),
        ("287.321.9111x750", "2873-2191-1175-0", "equal"), ("+1-482-782-2981x72475", "148 278 229 817 247 5", "equal"),
        # E-mails.
        ("Jo.Smith@Example.com", "jo.smith@example.com", "equal"), ("rmanzano@gmx.de", "rmanzano@web.de", "nearly"),
        ("liliana12@web.de", "lilianna12@web.de", "nearly"), ("liliana12@web.de", "liliana13@web.de", "alike"),
        ("jo@web.de", "jo@gmx.de", "alike"), ("anna@web.de", "peter@web.de", "different"),
        # Codes, houses, flats.
        ("INV-1001", "inv1001", "equal"), ("INV-1001", "inv 1001", "nearly"), ("08977", "8977", "equal"),
        ("002313121", "2313121", "equal"), ("SW1A 1AA", "sw1a1aa", "equal"), ("B0007TXQGE", "B0007TXQGF", "alike"),
        ("B0007TXQGE", "A1234567", "different"), ("14A", "14C", "contradicts"), ("12A", "12B", "contradicts"),
        ("2A", "2", "different"), ("14A", "15A", "contradicts"), ("FLAT 14A", "FLAT 14C", "contradicts"),
        ("FLAT A", "FLAT B", "contradicts"), ("Flat 14A", "flat 14 a", "nearly"), ("No 7", "No 7.5", "contradicts"),
        # Texts.
        ("12 Main Street", "14 Main Street", "contradicts"), ("12 Main Street", "Main Street", "alike"),
        ("CIPLAR LA 40 TABLET", "Ciplar LA 80 tablet", "contradicts"), ("A+", "A-", "different"),
        ("C++", "C#", "different"),
        ("Jonathan Smith", "Jonathon Smith", "nearly"), ("Versluijs, Elin", "Elin Versluijs", "nearly"),
        ("Havlíček, Alexandr", "Alexandr Havlíečk", "nearly"), ("Dr. Romeo Piazzi", "PIAZZI, ROMEO", "nearly"),
        ("Ashleigh Robinson", "A. Robinson", "alike"), ("Ashleigh Robinson", "Robinson, A.", "alike"),
        ("J. R. R. Tolkien", "John Ronald Reuel Tolkien", "alike"), ("Ashleigh Robinson", "B. Robinson", "different"),
        ("Red Bull", "Redbull", "nearly"), ("Hepatitis A", "Hepatitis B", "contradicts"),
        ("John A Smith", "John B Smith", "contradicts"), ("Jo Smith", "Peter Jones", "different"),
        # People.
        ("Francisco", "Francisca", "contradicts"), ("Daniel Roth", "Daniela Roth", "contradicts"),
        ("Julien Petit", "Julienne Petit", "contradicts"), ("Александр", "Александра", "contradicts"),
        ("Willie Brown Jr", "Willie Brown", "alike"), ("John Smith II", "John Smith III", "contradicts"),
        ("John Smith Jr.", "John Smith Sr.", "contradicts"), ("John Smith Jr.", "John Smith II", "nearly"),
        # Companies: a legal form is little of a name, with or without dots and spaces.
        ("株式会社メルカリ", "メルカリ", "nearly"), ("S.C. Dacia S.R.L.", "S.C. Petrom S.R.L.", "different"),
        ("Dacia S.R.L.", "Dacia SRL", "equal"), ("Müller GmbH", "Müller", "nearly"),
        ("삼성전자 주식회사", "삼성전자", "nearly"),
        ("Orlen sp. z o.o.", "Orlen", "nearly"),
        # Codes of few letters.
        ("Malr", "Male", "alike"), ("Mal", "Male", "nearly"), ("msle", "Male", "alike"), ("Make", "Male", "alike"),
        ("Female (cis)", "Female", "nearly"), ("male", "Male", "equal"), ("Banas", "Bananas", "nearly"),
        # Nothing is known.
        ("N/A", "N/A", "missing"), ("", "x", "missing"), ("unknown", "Jo", "missing"), ("", "", "missing"),
    ],
)  # fmt: skip
def test_levels_of_two_cells(one: str, other: str, level: str) -> None:
    assert level_of(one, other) == level


def test_amounts_less_a_fee_are_alike_and_prices_and_doses_are_not() -> None:
    amounts = [f"{13 * number}.{number:02}" for number in range(11, 41)]
    pairs = {("100.00", "98.20"): NEARLY, ("100.00", "93.50"): ALIKE, ("100.00", "91.00"): CONTRADICTS}
    for (one, other), level in pairs.items():
        left, right = read_column([one, *amounts]), read_column([other, *amounts])
        first = np.zeros(1, np.int64)
        assert compare_values(left, right, first, first).tolist() == [level]
        assert compare_values(right, left, first, first).tolist() == [level]
        # A few numbers, numbers that many rows share, and numbers with a unit are as they are written.
        few, shared, doses = amounts[:9], amounts * 3, [f"{amount} mg" for amount in amounts]
        for others, unit in ((few, ""), (shared, ""), (doses, " mg")):
            left, right = read_column([one + unit, *others]), read_column([other + unit, *others])
            assert compare_values(left, right, first, first).tolist() == [CONTRADICTS]


def test_kinds_that_differ_are_compared_by_what_both_can_be() -> None:
    assert level_of("24999", "24999.00", ("12.50", "3.75")) == "equal"
    left, right = read_column(["24999", "13999", "15000"]), read_column(["24,999.00", "3.75"])
    first = np.zeros(1, np.int64)
    assert [KINDS[int(values.kinds[0])] for values in (left, right)] == ["CODE", "NUMBER"]
    assert compare_values(left, right, first, first).tolist() == [EQUAL]


def test_long_texts_are_alike_at_most_by_their_beginning() -> None:
    beginning = "a long description of a thing that nobody reads to its end, because it goes on"
    assert level_of(f"{beginning} and on", f"{beginning} and ends") == "alike"
    assert level_of(beginning, beginning) == "equal"


def test_each_pair_of_rows_has_its_level() -> None:
    left, right = read_column(["b", "a", "b", "N/A"]), read_column(["a", "2.5 mg", "b"])
    i, j = np.array([0, 1, 2, 3, 1]), np.array([2, 0, 2, 0, 2])
    assert compare_values(left, right, i, j).tolist() == [EQUAL, EQUAL, EQUAL, MISSING, DIFFERENT]
    assert compare_values(left, right, i[:0], j[:0]).tolist() == []
    assert read_column([]).kinds.tolist() == []


words = st.sampled_from([
    "2.5", "25", "-20", "mg", "1/2", "2020-01-05", "5 Jan 2020", "+49 30 901820", "jo@example.com", "14A", "Jr",
    "S.R.L.",
    "N/A", "Francisca", "株式会社", "½", "1.234,50", "1,234.50", "0", "007", "é", "C++", "A-", "'", "\"", "٣", "000",
])  # fmt: skip
texts = (
    st.text(max_size=40) | st.lists(words, max_size=5).map(" ".join) | st.text("0123456789.,/-+ ()e:mg", max_size=30)
)
columns = st.lists(texts, min_size=1, max_size=8)


@given(columns, columns)
def test_any_texts_are_compared_symmetrically(left: list[str], right: list[str]) -> None:
    lefts, rights = read_column(left), read_column(right)
    i, j = (at.ravel() for at in np.meshgrid(np.arange(len(left)), np.arange(len(right))))
    found = compare_values(lefts, rights, i, j)
    np.testing.assert_array_equal(found, compare_values(rights, lefts, j, i))
    assert set(found.tolist()) <= {CONTRADICTS, DIFFERENT, ALIKE, NEARLY, EQUAL, MISSING}
    for a, b, level in zip(i.tolist(), j.tolist(), found.tolist(), strict=True):
        assert left[a] != right[b] or level in (EQUAL, MISSING)


@given(columns)
def test_the_order_of_rows_changes_nothing(column: list[str]) -> None:
    values, turned = read_column(column), read_column(column[::-1])
    for name in ("kinds", "numbers", "days", "digits", "units", "keys"):
        one, other = getattr(values, name)[values.of_row], getattr(turned, name)[turned.of_row][::-1]
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "part", ["1", "1.", "1/", "1-", "-1 ", "1,234,", "a.", "a. ", "1 ", "s.r.l. ", "()", "a@", "½", "é"]
)
def test_long_cells_are_read_in_linear_time(part: str) -> None:
    # A pattern that goes back and forth would take hours.
    values = read_column([part * (200_000 // len(part))])
    assert len(values.kinds) == 1
