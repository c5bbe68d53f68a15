"""Lists of names alone. Names that differ in the ending of a gender, or the generation, are not the same."""

from __future__ import annotations

from functools import cache
from random import Random

from gramvec_training.data.made_tables import slips, words
from gramvec_training.data.made_tables.families.people import find_other_ending
from gramvec_training.data.made_tables.records import MadeTable, fold

LOCALES = ("es_ES", "it_IT", "pt_BR", "en_US", "de_DE", "fr_FR", "pl_PL", "cs_CZ", "ro_RO", "es_MX")
# Names of a list, at most.
NUMBERS = (20, 60, 150, 400)
# Names that have a namesake of the other gender; of another generation; those that the other list has, and those of
# which it has the namesake.
OF_GENDERS, OF_GENERATIONS, SHARED, NAMESAKES = 0.35, 0.3, 0.6, 0.6
GENERATIONS = ("Jr", "Sr", "II", "III")
# Of two generations, one that is not written.
UNWRITTEN = 0.6


def make_namesakes(number: int, drawn: Random) -> MadeTable:
    """Return two lists of names of one language; of odd numbers both as one."""
    locale = drawn.choice(LOCALES)
    men, women, last_names = words.list_person_names(locale)
    left: list[str] = []
    right: list[tuple[int | None, str]] = []
    known: set[str] = set()
    for _ in range(drawn.choice(NUMBERS)):
        last, way = drawn.choice(last_names), drawn.random()
        if way < OF_GENDERS:
            names = [(first, "") for first in drawn.sample(drawn.choice(list_both_forms()), 2)]
        elif way < OF_GENDERS + OF_GENERATIONS:
            first = drawn.choice(men)
            names = [(first, suffix) for suffix in _draw_generations(drawn)]
        else:
            names = [(drawn.choice(men + women), "")]
        texts = [f"{first} {last}{suffix}" for first, suffix in names]
        if any(fold(text) in known for text in texts):
            continue
        known.update(map(fold, texts))
        if drawn.random() < SHARED:
            right.append((len(left), _write_again(*names[0], last, len(names) > 1, drawn)))
        right += [(None, text) for text in texts[1:] if drawn.random() < NAMESAKES]
        left.append(texts[0])
    drawn.shuffle(right)
    pairs = sorted((row, place) for place, (row, _) in enumerate(right) if row is not None)
    rights = [name for _, name in right]
    if number % 2:
        whole = [(row, len(left) + place) for row, place in pairs]
        return MadeTable(f"namesakes-{number}", "people", "one register", {"name": left + rights}, None, whole)
    return MadeTable(f"namesakes-{number}", "people", "register", {"name": left}, {"name": rights}, pairs)


@cache
def list_both_forms() -> tuple[tuple[str, str], ...]:
    """Return first names of men and women that differ in the ending alone."""
    lists = [words.list_person_names(locale) for locale in LOCALES]
    women = {name for _, of_women, _ in lists for name in of_women}
    men = sorted({name for of_men, _, _ in lists for name in of_men} - women)
    both = [(name, find_other_ending(name)) for name in men]
    return tuple((name, other) for name, other in both if other in women)


def _draw_generations(drawn: Random) -> list[str]:
    """Return what stands behind the names of two generations."""
    one, other = drawn.sample(GENERATIONS, 2)
    both = [f" {one}{drawn.choice(('', '.')) if one in ('Jr', 'Sr') else ''}", f" {other}"]
    if drawn.random() < UNWRITTEN:
        both[1] = ""
    drawn.shuffle(both)
    return both


def _write_again(first: str, suffix: str, last: str, has_namesake: bool, drawn: Random) -> str:
    """Return a name with a slip or an initial; what tells it from its namesake keeps its letters."""
    way = drawn.random()
    if way < 0.35:
        last = slips.slip(last, drawn)
    elif way < 0.55 and not has_namesake:
        first = slips.slip_word(first, drawn)
    elif way < 0.65 and not has_namesake:
        first = f"{first[:1]}."
    return f"{first} {last}{suffix}"
