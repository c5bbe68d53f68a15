"""What tells two people of one family apart: generations (Jr, II, III), and the endings of first names (Francisca)."""

from __future__ import annotations

from collections.abc import Sequence

from gramvec.text.folding import fold_letters

# The generation that a word behind a name is of. I and V are initials more often.
GENERATIONS = {
    "sr": 1, "senior": 1, "snr": 1,
    "jr": 2, "junior": 2, "jnr": 2, "ii": 2, "2nd": 2, "fils": 2, "filho": 2,
    "iii": 3, "3rd": 3, "iv": 4, "4th": 4, "vi": 6, "vii": 7, "viii": 8,
}  # fmt: skip
SAME_GENERATIONS = {"senior": "sr", "snr": "sr", "junior": "jr", "jnr": "jr"}
# Titles and forms of address, which a name has or not.
_TITLES = """
dr mr mrs ms miss mx prof professor sir dame lady lord rev esq phd md mba dds dvm cpa hon herr frau fr dipl ing mag
mme mlle monsieur madame mademoiselle maitre me sr sra srta senor senora senorita don dona doctor doctora sig sigra
dott dottssa dra avv arch dhr mevr mw drs ir hr fru froken pan pani mgr bc mudr judr phdr rndr csc docent inz lic
dna ks ph
"""
TITLES = frozenset(_TITLES.split())
# Stems of first names that are of a man with one ending and of a woman with the other.
_STEMS = {
    ("o", "a"): """
        adrian albert alejandr alessandr alfons alfred alvar angel antoni antonin armand augustin aureli bernard
        bernardin brun camil candid carl carmel cecili celestin cesari cipriann claudi constantin cristian damian dari
        delfin domenic doming donat edmund eduard emili enric ernest ettor eugeni fabi fabrizi faustin federic felici
        felician ferdinand fernand filomen flavi florentin fortunat francesc francisc gerard giacom gian gin giordan
        giorgi giovann giuli giulian giuliann giustin graziell gregori guid gustav hilari honori horaci ignaci isidor
        jacint josefin juli julian justin laur laurean lazar leonard leopold lin livi lorenz luci lucian ludovic luis
        macari marcel marcelin mari marian marin martin massim massimilian matild maurici maurizi maxim maximilian
        melani modest monic natali nicol octavi ottavi orland osvald paol paul paulin patrici patrizi pedr petr placid
        primitiv ramir ramon renat ricard riccard robert roberth rodolf roland roman romuald rosari rosalin ruben
        sabin sandr santin saturnin sebastian serafin sergi severin silvan silvi silveri simon stefan teodor tomas
        ubald urban valentin valeri virgini victori victorin vincenz vitali vittori viviana xaveri
        """,
    ("", "a"): """
        adam adrian albert alexander alfred andrei angel anton antonin august bernard bogdan boguslaw bohumil bohuslav
        branislav bronislaw carl christian cornel czeslaw damian daniel david dominik edmund eduard edward emanuel
        emil erik ernest eugen fabian ferdinand florian frederik fridrik gabriel georg gerard gilbert gustav henrik
        herbert ivan jaromir jaroslav jaroslaw joseph josef juan julian justin kazimir konstantin kristian krystian
        ladislav leopold ludmil ludwik manuel marcel marcelin marian marin mark martin maximilian michael michal
        miguel mihael mikael miloslav miroslav miroslaw norbert octavian oliver patrik paul paulin rafael renat robert
        roman ruslan samuel sebastian serafin silvan simon stanislav stanislaw stefan steven teodor theodor tomas
        urban valentin valerian viktor victor vilhelm vladimir vladislav wilhelm wladyslaw yaroslav zdenek zdzislaw
        zenon
        """,
    ("", "e"): """
        adrien aime andre armand bernard christian fernand francois gerald gilbert julien justin laurent leonard louis
        lucien michel pascal paul rene renaud romain simon valentin yvan
        """,
    ("", "ne"): "adrien aurelien christian damien fabien flavien jean julien lucien sebastien simon vivien yvan yvon",
    ("", "le"): "daniel emmanuel gabriel joel marcel michel noel raphael",
    ("", "ette"): "paul george bernard",
    ("", "ine"): "joseph paul karol ernest alexandr clement just",
    ("us", "a"): "claudi fabi juli mari august flavi corneli justin lucian valeri",
    ("os", "a"): "alexandr georgi",
    ("e", "a"): "felic giusepp michel simon raffael gabriel emanuel daniel",
    ("й", "я"): "валери евгени анатоли юли васили",
    ("", "а"): "александр валентин владислав иван роман станислав ярослав вячеслав богдан мирослав",
}  # fmt: skip


def _read_stems() -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for (man, woman), stems in _STEMS.items():
        for stem in stems.split():
            found.setdefault(fold_letters(stem + man), set()).add(f"{stem}{man}-")
            found.setdefault(fold_letters(stem + woman), set()).add(f"{stem}{man}+")
    return {name: tuple(sorted(marks)) for name, marks in found.items()}


# Of a first name that has a form of the other gender, its man's name and its own gender: "francisco+" of Francisca.
GENDERS = _read_stems()


def generation_of(words: Sequence[str]) -> int:
    """Return the generation that the last word of a name tells, 1 for senior; 0 for none."""
    return GENERATIONS.get(words[-1], 0) if len(words) > 1 else 0
