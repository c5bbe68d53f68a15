"""Numbers with a unit in a query: "32 gb" finds 32gb, "3 meters" finds 3m, and "3m" finds "3 m".

Only what letters search for is spelled in more ways; the texts stay as they are.
"""

from __future__ import annotations

import re

# The short form of a unit, and the words that mean it.
UNITS = {
    "cm": ("centimeter", "centimeters"), "ft": ("foot", "feet"),
    "g": ("gram", "grams", "gramme", "grammes"), "gb": ("gigabyte", "gigabytes"), "h": ("hour", "hours"),
    "hz": ("hertz",),
    "in": ("inch", "inches"), "kb": ("kilobyte", "kilobytes"), "kg": ("kilogram", "kilograms", "kilo"),
    "km": ("kilometer", "kilometers"), "l": ("liter", "liters"),
    "lb": ("pound", "pounds", "lbs"), "m": ("meter", "meters"), "mah": (),
    "mb": ("megabyte", "megabytes"),
    "mg": ("milligram", "milligrams"), "mhz": ("megahertz",), "ghz": ("gigahertz",), "mcg": ("microgram", "micrograms"),
    "min": ("minute", "minutes"), "ml": ("milliliter", "milliliters"),
    "mm": ("millimeter", "millimeters"), "mp": ("megapixel", "megapixels"),
    "oz": ("ounce", "ounces"), "tb": ("terabyte", "terabytes"), "v": ("volt", "volts"), "w": ("watt", "watts"),
    "kw": ("kilowatt", "kilowatts"), "a": ("amp", "amps", "ampere", "amperes"), "pcs": ("piece", "pieces", "pc"),
}  # fmt: skip
_SHORT = {word: short for short, words in UNITS.items() for word in (short, *words)}
# As the British spell them.
_SHORT |= {
    re.sub("er(s?)$", r"re\1", word): short for word, short in _SHORT.items() if re.search("(met|lit)ers?$", word)
}
_NUMBER_AND_UNIT = re.compile(r"(?<![\w.,])(\d{1,12}(?:[.,]\d{1,6})?)\s*([A-Za-z]{1,12})\b")
MAX_FORMS = 16


def with_units(text: str) -> str:
    """Return a query with other spellings of its numbers with a unit behind it: "ram 32 gb" is "ram 32 gb 32gb".

    A number and its unit are joined where they stand apart, and stand apart where they are joined. A word for a unit is
    its short form: by its many letters it would find texts with other numbers.
    """
    room = [MAX_FORMS]

    def spell(match: re.Match[str]) -> str:
        number, unit = match[1], match[2]
        short = _SHORT.get(unit.lower())
        if short is None or not room[0]:
            return match[0]
        room[0] -= 1
        return f"{number} {short} {number}{short}"

    return _NUMBER_AND_UNIT.sub(spell, text)
