"""How a text goes wrong: keys, letters, words, marks, alphabets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from random import Random

_KEYS = (
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "йцукенгшщзхъ",
    "фывапролджэ",
    "ячсмитьбю",
    "ςερτυθιοπ",
    "ασδφγηξκλ",
    "ζχψωβνμ",
)
_NEAR: dict[str, str] = {}
for _row in _KEYS:
    for _at, _key in enumerate(_row):
        _NEAR[_key] = _row[max(0, _at - 1) : _at] + _row[_at + 1 : _at + 2]
# What ears and eyes confuse.
_CONFUSED = (
    ("ph", "f"), ("ck", "k"), ("tz", "z"), ("th", "t"), ("ei", "ai"), ("ey", "ay"), ("ie", "i"), ("y", "i"),
    ("mm", "m"), ("nn", "n"), ("ll", "l"), ("ss", "s"), ("tt", "t"), ("ff", "f"), ("rr", "r"), ("dt", "t"), ("gh", "g"),
    ("c", "k"), ("s", "z"), ("v", "w"), ("rn", "m"), ("l", "1"), ("o", "0"), ("и", "і"), ("о", "а"), ("е", "и"),
    ("тт", "т"), ("нн", "н"), ("ου", "υ"), ("ει", "ι"), ("η", "ι"), ("ω", "ο"), ("αι", "ε"),
    ("b", "v"), ("j", "y"), ("h", ""),
)  # fmt: skip
_OTHER = {
    "ß": "ss", "æ": "ae", "Æ": "Ae", "ø": "o", "Ø": "O", "å": "a", "Å": "A", "đ": "d", "Đ": "D", "ł": "l", "Ł": "L",
    "ı": "i", "İ": "I", "þ": "th", "Þ": "Th", "ð": "d", "œ": "oe", "Œ": "Oe", "ə": "a", "Ə": "A",
}  # fmt: skip
_GERMAN = {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"}
_CYRILLIC = dict(
    zip(
        "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґ",
        "a b v g d e e zh z i y k l m n o p r s t u f kh ts ch sh shch _ y _ e yu ya i yi ye g".replace("_", "").split(
            " "
        ),
        strict=True,
    )
)
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρσςτυφχψω",
        [
            "a",
            "v",
            "g",
            "d",
            "e",
            "z",
            "i",
            "th",
            "i",
            "k",
            "l",
            "m",
            "n",
            "x",
            "o",
            "p",
            "r",
            "s",
            "s",
            "t",
            "y",
            "f",
            "ch",
            "ps",
            "o",
        ],
        strict=True,
    )
)
_GREEK_PAIRS = {"ου": "ou", "αυ": "av", "ευ": "ev", "μπ": "b", "ντ": "nt", "γγ": "ng", "γκ": "gk", "τσ": "ts"}


_DIGIT = re.compile(r"\d")
_OTHER_ALPHABET = re.compile(r"[Ͱ-ӿ가-힣]")


def strip_marks(text: str) -> str:
    """Return a text without marks over its letters, and with plain letters for those of some languages."""
    text = "".join(_OTHER.get(letter, letter) for letter in text)
    # A mark of another script belongs to its letter.
    return "".join(_plain(letter) for letter in unicodedata.normalize("NFC", text))


def _plain(letter: str) -> str:
    parts = unicodedata.normalize("NFD", letter)
    return parts[0] if len(parts) > 1 and (parts[0] < "ϰ" or parts[0] in "иИеЕ") else letter


def write_umlauts_out(text: str) -> str:
    """Return a German text with ae for its a-umlaut, and so on."""
    return "".join(_GERMAN.get(letter, letter) for letter in text)


def to_latin(text: str) -> str:
    """Return Greek, Cyrillic and hangul in Latin letters; other letters as they are."""
    if not _OTHER_ALPHABET.search(text):
        return text
    plain = "".join(
        letter
        for letter in unicodedata.normalize("NFD", text)
        if letter in ("\u0306", "\u0308") or not unicodedata.combining(letter)
    )
    plain = unicodedata.normalize("NFC", plain)
    made = []
    at = 0
    while at < len(plain):
        pair = plain[at : at + 2].lower()
        if pair in _GREEK_PAIRS:
            made.append(_as_case(_GREEK_PAIRS[pair], plain[at]))
            at += 2
            continue
        made.append(_letter_to_latin(plain[at]))
        at += 1
    return "".join(made)


def _letter_to_latin(letter: str) -> str:
    low = letter.lower()
    known = _CYRILLIC.get(low, _GREEK.get(low))
    if known is not None:
        return _as_case(known, letter)
    if "가" <= letter <= "힣":
        return _hangul(letter)
    return letter


def _as_case(text: str, like: str) -> str:
    return text.capitalize() if like.isupper() else text


_LEADS = ["g", "kk", "n", "d", "tt", "r", "m", "b", "pp", "s", "ss", "_", "j", "jj", "ch", "k", "t", "p", "h"]
_VOWELS = [
    "a",
    "ae",
    "ya",
    "yae",
    "eo",
    "e",
    "yeo",
    "ye",
    "o",
    "wa",
    "wae",
    "oe",
    "yo",
    "u",
    "wo",
    "we",
    "wi",
    "yu",
    "eu",
    "ui",
    "i",
]
_TAILS = [
    "_",
    "k",
    "k",
    "k",
    "n",
    "n",
    "n",
    "t",
    "l",
    "l",
    "l",
    "l",
    "l",
    "l",
    "l",
    "l",
    "m",
    "p",
    "p",
    "t",
    "t",
    "ng",
    "t",
    "t",
    "k",
    "t",
    "p",
    "t",
]


def _hangul(letter: str) -> str:
    number = ord(letter) - 0xAC00
    parts = _LEADS[number // 588], _VOWELS[number % 588 // 28], _TAILS[number % 28]
    return "".join(parts).replace("_", "")


def is_cased(text: str) -> bool:
    """Return whether a text has letters of two cases."""
    return text.lower() != text.upper()


def slip(text: str, drawn: Random) -> str:
    """Return a text with one slip in one of its longer words."""
    words = text.split(" ")
    # A digit that is another makes another thing.
    places = [at for at, word in enumerate(words) if len(word) >= 3 and not _DIGIT.search(word)]
    if not places:
        return text
    weights = [len(words[at]) for at in places]
    at = drawn.choices(places, weights)[0]
    words[at] = slip_word(words[at], drawn)
    return " ".join(words)


def slip_longest(text: str, drawn: Random) -> str:
    """Return a text with one slip in its longest word."""
    words = text.split(" ")
    at = max(range(len(words)), key=lambda place: 0 if _DIGIT.search(words[place]) else len(words[place]))
    words[at] = slip_word(words[at], drawn)
    return " ".join(words)


def slip_word(word: str, drawn: Random) -> str:
    """Return a word with a letter swapped, lost, doubled, another, one more, or what sounds alike."""
    if len(word) < 2 or _DIGIT.search(word) or not any(letter.isalpha() for letter in word):
        return word
    for _ in range(4):
        made = drawn.choice(_SLIPS)(word, drawn)
        if made != word and made:
            return made
    return word


def _swap(word: str, drawn: Random) -> str:
    at = drawn.randrange(len(word) - 1)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _lose(word: str, drawn: Random) -> str:
    at = drawn.randrange(len(word))
    return word[:at] + word[at + 1 :] if len(word) > 2 else word


def _double(word: str, drawn: Random) -> str:
    at = drawn.randrange(len(word))
    return word[: at + 1] + word[at:] if word[at].isalpha() else word


def _other(word: str, drawn: Random) -> str:
    at = drawn.randrange(len(word))
    near = _NEAR.get(word[at].lower(), "")
    if not near:
        return word
    letter = drawn.choice(near)
    return word[:at] + (letter.upper() if word[at].isupper() else letter) + word[at + 1 :]


def _more(word: str, drawn: Random) -> str:
    at = drawn.randrange(len(word))
    near = _NEAR.get(word[at].lower(), "")
    return word[:at] + drawn.choice(near) + word[at:] if near and at else word


def _confuse(word: str, drawn: Random) -> str:
    low = word.lower()
    ways = [
        (at, one, other)
        for pair in _CONFUSED
        for one, other in (pair, pair[::-1])
        if one
        for at in [low.find(one)]
        if at >= 0
    ]
    if not ways:
        return word
    at, one, other = drawn.choice(ways)
    made = word[:at] + other + word[at + len(one) :]
    return made.capitalize() if word.istitle() else made


_SLIPS: tuple[Callable[[str, Random], str], ...] = (_swap, _lose, _double, _other, _more, _confuse, _confuse)


def slip_digit(text: str, drawn: Random) -> str:
    """Return a text with two of its digits swapped, one lost, or one another."""
    places = [at for at, letter in enumerate(text) if letter.isdigit()]
    if len(places) < 4:
        return text
    at = drawn.choice(places[1:])
    way = drawn.randrange(3)
    if way == 0 and text[at - 1].isdigit():
        return text[: at - 1] + text[at] + text[at - 1] + text[at + 1 :]
    if way == 1:
        return text[:at] + text[at + 1 :]
    return text[:at] + drawn.choice("0123456789") + text[at + 1 :]


def move_word(text: str, drawn: Random) -> str:
    """Return a text with two of its words in another order."""
    words = text.split(" ")
    if len(words) < 2:
        return text
    if drawn.random() < 0.5:
        return " ".join([words[-1], *words[:-1]])
    at = drawn.randrange(len(words) - 1)
    words[at], words[at + 1] = words[at + 1], words[at]
    return " ".join(words)


def lose_word(text: str, drawn: Random) -> str:
    """Return a text of three words or more without a short one of them, or else its last."""
    words = text.split(" ")
    if len(words) < 3:
        return text
    short = [at for at, word in enumerate(words) if len(word) <= 3 and not _DIGIT.search(word)]
    del words[drawn.choice(short) if short else len(words) - 1]
    return " ".join(words)


def split_or_join(text: str, drawn: Random) -> str:
    """Return a text with a space more or less, or a hyphen for a space."""
    places = [at for at, letter in enumerate(text) if letter == " "]
    if places and drawn.random() < 0.7:
        at = drawn.choice(places)
        return text[:at] + drawn.choice(("", "-", "  ", ", ")) + text[at + 1 :]
    words = [match for match in re.finditer(r"[^\W\d_]{6,}", text)]
    if not words:
        return text
    word = drawn.choice(words)
    at = drawn.randint(word.start() + 2, word.end() - 2)
    return text[:at] + " " + text[at:]


def initial_of_word(text: str, drawn: Random) -> str:
    """Return a text with one of its words cut short: a letter and a point, or some letters."""
    words = text.split(" ")
    places = [at for at, word in enumerate(words) if len(word) > 4 and word.isalpha()]
    if len(words) < 2 or not places:
        return text
    at = drawn.choice(places)
    words[at] = words[at][: drawn.choice((1, 3, 4))] + drawn.choice((".", ".", ""))
    return " ".join(words)


def change_case(text: str, drawn: Random) -> str:
    """Return a text in another case."""
    return drawn.choice((str.upper, str.lower, str.title, str.swapcase))(text)


def change_marks(text: str, drawn: Random) -> str:
    """Return a text with other punctuation, or without."""
    return drawn.choice(
        (
            lambda: re.sub(r"[.,;:'’`]", "", text),
            lambda: text.replace("-", " "),
            lambda: text.replace("&", "and") if "&" in text else text.replace(" and ", " & "),
            lambda: text + drawn.choice((".", ",", " -", "*")),
            lambda: f'"{text}"',
            lambda: strip_marks(text),
        )
    )()
