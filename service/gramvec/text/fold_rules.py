"""Rules by which characters fold, in Unicode's own terms, and the program that writes their table, folds.txt.

`python -m gramvec.text.fold_rules` writes the same bytes with every Python: characters that are newer than the table's
version of Unicode, by the list at its head, fold to themselves; what the rules ask about older ones never changes (the
stability policies of decompositions, case folding, names and digits). docs/design/features.md lists what folds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

from gramvec.text.characters import CODE_POINTS
from gramvec.text.folding import TABLE

SECTIONS = ("unassigned", "letters", "plain")

Ranges = tuple[tuple[int, int], ...]


def characters_in(*ranges: tuple[int, int]) -> frozenset[str]:
    """Return the characters of ranges of code points, whose ends belong to them."""
    return frozenset(chr(point) for first, last in ranges for point in range(first, last + 1))


# Default_Ignorable_Code_Point (DerivedCoreProperties.txt), which Python does not know.
IGNORABLE = characters_in(
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
# Marks that their scripts write optionally, by themselves or where a letter is taken apart: the general ones of Latin,
# Greek and Cyrillic, Cyrillic titlos, Hebrew and Arabic points with tatweel, Syriac points, and half marks.
MARKS = characters_in(
    (0x300, 0x36F), (0x483, 0x489), (0x591, 0x5BD), (0x5BF, 0x5BF), (0x5C1, 0x5C2), (0x5C4, 0x5C5), (0x5C7, 0x5C7),
    (0x610, 0x61A), (0x640, 0x640), (0x64B, 0x65F), (0x670, 0x670), (0x6D6, 0x6DC), (0x6DF, 0x6E4), (0x6E7, 0x6E8),
    (0x6EA, 0x6ED), (0x711, 0x711), (0x730, 0x74A), (0x898, 0x89F), (0x8CA, 0x8E1), (0x8E3, 0x8FF), (0x1AB0, 0x1ACE),
    (0x1DC0, 0x1DFF), (0x20D0, 0x20F0), (0xFB1E, 0xFB1E), (0xFE20, 0xFE2F),
)  # fmt: skip
# These Cyrillic letters lose their marks: ѐ ё ѝ й. Others, as ї and ў, are always written with their marks.
CYRILLIC = characters_in((0x400, 0x52F))
CYRILLIC_WITHOUT_MARKS = frozenset("ѐёѝйЀЁЍЙ")
ARABIC_PRESENTATION = characters_in((0xFB50, 0xFDFF), (0xFE70, 0xFEFE))
LATIN_AND_ARMENIAN_LIGATURES = characters_in((0xFB00, 0xFB06), (0xFB13, 0xFB17))

APOSTROPHES = "\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a\u275b\u275c"
QUOTES = "\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb\u275d\u275e"
CURLY = {**dict.fromkeys("\u2018\u2019\u201a\u201b", "'"), **dict.fromkeys("\u201c\u201d\u201e\u201f", '"')}
# What no property of Unicode tells.
CHOSEN = {
    **dict.fromkeys(APOSTROPHES, "'"),
    **dict.fromkeys("\u00b4\u02b9\u02bb\u02bc\u02bd\u02c8\u0384\u055a\u05f3\u1fbd\u1fbf\u1ffe\ua78c", "'"),
    **dict.fromkeys(QUOTES, '"'),
    **dict.fromkeys("\u02ba\u02ee\u05f4\u300c\u300d\u300e\u300f\u301d\u301e\u301f", '"'),
    **dict.fromkeys("\u2212\u02d7\u2043", "-"),  # and every Dash_Punctuation
    **dict.fromkeys("\u2044\u2215\u29f8", "/"),
    **dict.fromkeys("\u2216\u29f5\u29f9", "\\"),
    **dict.fromkeys("™®℠©℗", ""),
    **{"æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ɵ": "o", "ı": "i", "ȷ": "j", "ŋ": "n"},
    # Arabic: alef maqsura and Persian yeh, Persian kaf, teh marbuta and other forms of heh, alef wasla.
    **{"ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه", "ہ": "ه", "ە": "ه", "ٱ": "ا"},
    **{"װ": "וו", "ױ": "וי", "ײ": "יי"},
}  # fmt: skip
_LATIN_WITH = re.compile(r"LATIN (?:CAPITAL|SMALL) LETTER ([A-Z]) WITH .+").fullmatch


def fold_character(character: str) -> str:
    """Return what a character is read as when letters are compared: itself, others, or nothing."""
    folded, before = character, ""
    while folded != before:
        before = folded
        folded = "".join(map(_fold_once, folded))
    return unicodedata.normalize("NFC", folded)


def _fold_once(character: str) -> str:
    if character in IGNORABLE or character in MARKS:
        return ""
    if character in CHOSEN:
        return CHOSEN[character]
    category = unicodedata.category(character)
    if category == "Pd":
        return "-"
    if category == "Nd":
        return str(unicodedata.decimal(character))
    apart = unicodedata.normalize("NFKD", character)
    marked = any(character in MARKS for character in apart)
    if category == "No" and "\u2044" in apart:
        return " " + apart.replace("\u2044", "/")  # 1½ is 1 1/2
    if marked and apart.startswith(" "):
        return "" if character in ARABIC_PRESENTATION else character  # a mark by itself
    if marked and category[0] != "L":
        return character  # ≠ is no =
    if marked and character in CYRILLIC and character not in CYRILLIC_WITHOUT_MARKS:
        return character.casefold()
    if apart != character:
        return apart
    name = _LATIN_WITH(unicodedata.name(character, ""))
    return name[1].lower() if name else character.casefold()


def plain_form(character: str) -> str:
    """Return the plain form of a character that only looks different: of full width, a ligature, curly, invisible."""
    if character in IGNORABLE:
        return ""
    if character in CURLY:
        return CURLY[character]
    widths = unicodedata.decomposition(character).startswith(("<wide>", "<narrow>"))
    if widths or character in LATIN_AND_ARMENIAN_LIGATURES:
        return unicodedata.normalize("NFKC", character)
    return character


def join_ranges(points: Iterable[int]) -> Ranges:
    """Return ascending numbers as ranges, whose ends belong to them."""
    ranges: list[list[int]] = []
    for point in points:
        if ranges and point == ranges[-1][1] + 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return tuple((first, last) for first, last in ranges)


def table(version: str, unassigned_ranges: Ranges) -> str:
    """Return the table of a version of Unicode, whose unassigned code points are given.

    A line is a code point and what it folds to, in hexadecimal, or a range of those that fold to nothing.
    """
    newer = {point for first, last in unassigned_ranges for point in range(first, last + 1)}
    lines = [f"# Unicode {version}; written by python -m gramvec.text.fold_rules, not by hand", "[unassigned]"]
    lines += map(_format_points, unassigned_ranges)
    rules: tuple[Callable[[str], str], ...] = (fold_character, plain_form)
    for section, rule in zip(SECTIONS[1:], rules, strict=True):
        folds = {
            point: rule(chr(point)) for point in range(CODE_POINTS) if point not in newer or chr(point) in IGNORABLE
        }
        dropped = join_ranges(point for point, text in folds.items() if not text)
        changed = [(point, text) for point, text in folds.items() if text and text != chr(point)]
        lines += [f"[{section}]", *map(_format_points, dropped)]
        lines += [" ".join(f"{number:04X}" for number in (point, *map(ord, text))) for point, text in changed]
    return "\n".join(lines) + "\n"


def _format_points(both: tuple[int, int]) -> str:
    return "-".join(f"{point:04X}" for point in both)


def unassigned_ranges() -> Ranges:
    """Return the code points that this Python's Unicode assigns no character, in ranges."""
    return join_ranges(point for point in range(CODE_POINTS) if unicodedata.category(chr(point)) == "Cn")


def main() -> None:
    """Write the table anew, of its own version of Unicode, or of this Python's where there is none yet."""
    version, newer = unicodedata.unidata_version, None
    if TABLE.exists():
        head, _, rest = TABLE.read_text().partition("\n[unassigned]\n")
        version = head.split(";")[0].removeprefix("# Unicode ")
        lines = rest.partition("\n[")[0].splitlines()
        newer = tuple((int(first, 16), int(last, 16)) for first, last in (line.split("-") for line in lines))
    TABLE.write_text(table(version, unassigned_ranges() if newer is None else newer))


if __name__ == "__main__":
    main()
