"""Dates by value: 2020-01-05, 5 Jan 2020, 05.01.2020 and 2020年1月5日 are one day. A month or a year alone is a date.

Where day and month may be either, a column's other dates tell. All texts are folded (`tokens.fold_text`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from gramvec.text.folding import fold_letters

FIRST_YEAR, LAST_YEAR = 1000, 2199
# Years of two digits are 1970 to 2069, as of the POSIX function strptime, a year later.
LAST_SHORT_YEAR = 69
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})(?:\2(\d{1,2}))?")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})")
_MONTH_YEAR = re.compile(r"(\d{1,2})[-/.](\d{4})")
_TIME = re.compile(r"(?:t|,?\s+)\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?\s*(?:z|[ap]\.?m\.?|utc|gmt|[+-]\d\d:?\d\d)?$")
_EASTERN = re.compile(r"(\d{4})\s*[年년]\s*(?:(\d{1,2})\s*[月월]\s*(?:(\d{1,2})\s*[日일])?)?")
_DAY_MONTH = re.compile(
    r"(?:(\d{1,2})(?:\.|st|nd|rd|th|er|e|de|º|o|ª)?[\s/-]*(?:de\s+|of\s+)?)?([^\W\d_]{3,12})\.?[\s/,-]*(?:de[l]?\s+)?(\d{4}|'?\d{2})"
    r"(?:\s*(?:г|года|г\.|р\.|року))?"
)
_MONTH_DAY = re.compile(r"([^\W\d_]{3,12})\.?[\s-]*(\d{1,2})(?:st|nd|rd|th)?[\s,/-]+(\d{4})")
# Months of the languages with the most speakers in Europe and America; a beginning of three letters or more serves,
# where it is of one month, and an earlier language decides between two.
_MONTHS = (
    "january february march april may june july august september october november december",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "januari februari mars april maj juni juli augusti september oktober november december",
    "januar februar marts april maj juni juli august september oktober november december",
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień",
    "ledna února března dubna května června července srpna září října listopadu prosince",
    "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
    "január február március április május június július augusztus szeptember október november december",
    "tammikuu helmikuu maaliskuu huhtikuu toukokuu kesäkuu heinäkuu elokuu syyskuu lokakuu marraskuu joulukuu",
    "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
    "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
    "ιανουαρίου φεβρουαρίου μαρτίου απριλίου μαΐου ιουνίου ιουλίου αυγούστου σεπτεμβρίου οκτωβρίου νοεμβρίου "
    "δεκεμβρίου",
)


class DateOrder(Enum):
    """Which comes first in 01/02/2020."""

    DAY_FIRST = "day"
    MONTH_FIRST = "month"


class Date(NamedTuple):
    """A day, or a month where `day` is 0, or a year where `month` is 0, too."""

    year: int
    month: int = 0
    day: int = 0

    @property
    def is_full(self) -> bool:
        """Return whether the day is known."""
        return self.day > 0

    @property
    def digits(self) -> str:
        """Return the eight digits of year, month and day."""
        return f"{self.year:04}{self.month:02}{self.day:02}"


def date_order(texts: Iterable[str]) -> DateOrder:
    """Return which comes first in a column's dates: the month, if more of them can have nothing but it there."""
    day = month = 0
    for text in texts:
        parts = _YEAR_LAST.match(text)
        if parts is not None:
            first, second = int(parts[1]), int(parts[3])
            day += first > 12 >= second
            month += second > 12 >= first
    return DateOrder.MONTH_FIRST if month > day else DateOrder.DAY_FIRST


def read_numeric_date(text: str, order: DateOrder) -> Date | None:
    """Return the date of digits and separators, such as 2020-01-05, 05.01.2020 and 01/2020; None for no date."""
    if parts := _YEAR_FIRST.fullmatch(text):
        return _date(parts[1], parts[3], parts[4] or "0")
    if parts := _YEAR_LAST.fullmatch(text):
        day, month = (parts[1], parts[3]) if order is DateOrder.DAY_FIRST else (parts[3], parts[1])
        # A column's order does not hold for a date that has none in it.
        return _date(parts[4], month, day) or _date(parts[4], day, month)
    if parts := _MONTH_YEAR.fullmatch(text):
        return _date(parts[2], parts[1], "0")
    return None


def read_compact_date(text: str) -> Date | None:
    """Return the date of eight digits, year first; None for no date."""
    return _date(text[:4], text[4:6], text[6:]) if len(text) == 8 and text.isdecimal() else None


def read_date(text: str, order: DateOrder) -> Date | None:
    """Return the date that a text of at most 64 characters is, without its time; None for no date."""
    if ":" in text and (time := _TIME.search(text)):
        text = text[: time.start()]
    if text[:1].isdecimal() and (found := read_numeric_date(text, order)) is not None:
        return found
    if parts := _EASTERN.fullmatch(text):
        return _date(parts[1], parts[2] or "0", parts[3] or "0")
    if parts := _DAY_MONTH.fullmatch(text):
        day, name, year = parts[1] or "0", parts[2], parts[3]
    elif parts := _MONTH_DAY.fullmatch(text):
        name, day, year = parts.groups()
    else:
        return None
    month = _months().get(name, 0)
    return _date(year, str(month), day) if month else None


def _date(year: str, month: str, day: str) -> Date | None:
    number = int(year.lstrip("'"))
    if len(year.lstrip("'")) == 2:
        number += 2000 if number <= LAST_SHORT_YEAR else 1900
    found = Date(number, int(month), int(day))
    if not FIRST_YEAR <= found.year <= LAST_YEAR or found.month > 12 or (found.day and not found.month):
        return None
    return found if found.day <= (_DAYS[found.month - 1] if found.month else 0) else None


@lru_cache(maxsize=1)
def _months() -> dict[str, int]:
    found: dict[str, int] = {}
    for language in _MONTHS:
        beginnings: dict[str, int] = {}
        for month, name in enumerate(map(fold_letters, language.split()), start=1):
            for length in range(3, len(name) + 1):
                other = beginnings.setdefault(name[:length], month)
                if other != month:
                    beginnings[name[:length]] = 0
        for name, month in beginnings.items():
            if month:
                found.setdefault(name, month)
    return found
