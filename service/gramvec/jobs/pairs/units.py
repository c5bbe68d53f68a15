"""Units of measure: what a number's unit measures, and how many of the smallest named unit it is.

Units of one kind convert exactly: 0.5 g are 500 mg. All names are folded (`tokens.fold_text`), so that a megabyte and a
megabit, a mega- and a milliwatt cannot be told apart by case; those are left out or read as what people mean.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from gramvec.text.folding import fold_letters

# What is measured, then names with how many of a small unit of the kind they are.
_TABLE = """
mass: mcg=1 µg=1 μg=1 ug=1 mg=1000 g=1000000 gm=1000000 gms=1000000 gr=1000000 gram=1000000 grams=1000000
    gramm=1000000 gramme=1000000 grammes=1000000 gramos=1000000 kg=1000000000 kgs=1000000000 kilo=1000000000
    kilos=1000000000 kilogram=1000000000 kilograms=1000000000 г=1000000 гр=1000000 мг=1000 кг=1000000000
    milligram=1000 milligrams=1000 oz=28349523.125 ounce=28349523.125 ounces=28349523.125 lb=453592370 lbs=453592370
    pound=453592370 pounds=453592370
volume: ul=0.001 µl=0.001 μl=0.001 ml=1 cc=1 millilitre=1 milliliter=1 millilitres=1 milliliters=1 мл=1 cl=10 dl=100
    l=1000 lt=1000 ltr=1000 litre=1000 liter=1000 litres=1000 liters=1000 litros=1000 л=1000
fluid-ounce: floz=1 fl.oz=1 oz.fl=1
length: nm=0.000001 µm=0.001 μm=0.001 um=0.001 mm=1 мм=1 millimeter=1 millimetre=1 millimeters=1 millimetres=1 cm=10
    cms=10 см=10 centimeter=10 centimetre=10 centimeters=10 centimetres=10 dm=100 m=1000 м=1000 mtr=1000 mtrs=1000
    meter=1000 metre=1000 meters=1000 metres=1000 metros=1000 km=1000000 км=1000000 "=25.4 ''=25.4 in=25.4 inch=25.4
    inches=25.4 zoll=25.4 ft=304.8 foot=304.8 feet=304.8 '=304.8 yd=914.4 yards=914.4 mi=1609344 mile=1609344
    miles=1609344
area: sqm=1 m2=1 qm=1 ha=10000 hectares=10000 km2=1000000
data: kb=1 kbyte=1 mb=1000 mbyte=1000 gb=1000000 gbyte=1000000 go=1000000 tb=1000000000 гб=1000000 мб=1000
voltage: mv=0.001 v=1 volt=1 volts=1 kv=1000 в=1
power: w=1 watt=1 watts=1 kw=1000 вт=1 квт=1000 hp=745.7 ps=735.49875
charge: mah=1 ah=1000
current: ma=1 amp=1000 amps=1000
frequency: hz=1 khz=1000 mhz=1000000 ghz=1000000000
resistance: ohm=1 ohms=1 ω=1 kohm=1000 kω=1000
capacitance: pf=1 nf=1000 uf=1000000 µf=1000000 μf=1000000
temperature: c=1 °c=1 celsius=1
fahrenheit: f=1 °f=1 fahrenheit=1
angle: °=1 deg=1 degrees=1
share: %=1 percent=1 prozent=1 pct=1
time: ms=0.001 s=1 sec=1 secs=1 second=1 seconds=1 min=60 mins=60 minute=60 minutes=60 h=3600 hr=3600 hrs=3600
    hour=3600 hours=3600
dose: iu=1 ui=1 ie=1
energy: kcal=1 cal=0.001
pieces: pcs=1 pc=1 pieces=1 stk=1 st=1 stück=1 ct=1 count=1 pk=1 pack=1 tabs=1 tab=1 tablets=1 tablet=1 caps=1
    capsules=1 шт=1 x=1
megapixels: mp=1 mpix=1 megapixel=1 megapixels=1
euro: eur=1 €=1 euro=1 euros=1
dollar: usd=1 $=1 us$=1 dollar=1 dollars=1
pound: gbp=1 £=1
yen: jpy=1 ¥=1 円=1 yen=1
rupee: inr=1 ₹=1 rs=1 rs.=1
zloty: pln=1 zł=1 zl=1
franc: chf=1 fr.=1
rouble: rub=1 руб=1 руб.=1 ₽=1
thousand: k=1
"""
# Units of one letter that may also be the letter of a flat or house.
ONE_LETTER = frozenset("glmvwkcfhs")
NO_UNIT = 0


class Unit(NamedTuple):
    """A unit: the number of its kind, from 1 on, and how many of the kind's first unit it is."""

    kind: int
    factor: Decimal


def read_unit(name: str) -> Unit | None:
    """Return the unit of a folded name, None for none. A k is a thousand of no unit, as in 4.7k."""
    return _UNITS.get(name)


def _read_table() -> dict[str, Unit]:
    found: dict[str, Unit] = {}
    kind = NO_UNIT
    for entry in _TABLE.split():
        name, _, factor = entry.rpartition("=")
        if name:
            found[fold_letters(name)] = Unit(kind, Decimal(factor))
        else:
            kind += 1
    found["k"] = Unit(NO_UNIT, Decimal(1000))
    return found


_UNITS = _read_table()
