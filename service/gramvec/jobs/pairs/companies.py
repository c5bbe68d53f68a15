"""Legal forms of companies: S.R.L. is srl, incorporated is inc, and 株式会社メルカリ is two words.

A legal form says little about which company it is; see `gramvec.jobs.pairs.tokens`, which weighs it as a common word.
"""

from __future__ import annotations

import re

from gramvec.text.folding import fold_letters

# Forms that are written as words or with dots, all folded; a form behind = is another name of the one in front.
_FORMS = """
inc=incorporated=incorp ltd=limited=ltda=limitada corp=corporation co=company=compania=cia=companhia llc llp lp plc
pty pvt=private gmbh mbh ag kg kgaa ohg gbr ug eg se sa=s/a sas sasu sarl=sarlu eurl snc sci scop spa srl=srls sapa
sl=slu slp bv nv vof cvba bvba ab hb kb as=a/s asa aps is=i/s oy oyj ky tmi kft bt zrt nyrt rt doo dd ad ood eood sc
sca scs ooo=ооо oao=оао zao=зао pao=пао ao=ао tov=тов tzov αε=αβεε επε οε pt tbk cv sdn=sendirian bhd=berhad kk yk
gk nl sac eirl saa sab spzoo spk spj sro=spolsro vos aş=as sti ltdsti uab sia jsc ojsc pjsc cjsc fze fzco wll bsc
saog saoc pllc lda unip
"""
# Of scripts without spaces.
_UNSPACED = """
股份有限公司 有限责任公司 有限責任公司 一般社団法人 公益社団法人 一般財団法人 公益財団法人 特定非営利活動法人
独立行政法人 社会福祉法人 医療法人 学校法人 宗教法人 株式会社 有限会社 合同会社 合資会社 合名会社 有限公司 集团公司
주식회사 유한회사 유한책임회사 재단법인 사단법인 บริษัท จำกัด
"""


def _read_forms() -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in _FORMS.split():
        names = [fold_letters(name).replace(".", "") for name in entry.split("=")]
        for name in names:
            found.setdefault(name, names[0])
    return found


FORMS = _read_forms()
# Forms that are more often something else where no dots tell.
WORDS = frozenset(("as", "is", "pt", "nl", "dd", "ad", "ky", "bt", "rt", "eg"))
UNSPACED: tuple[str, ...] = tuple(sorted(map(fold_letters, _UNSPACED.split()), key=len, reverse=True))
# All but the doubtful ones.
LEGAL = frozenset((*FORMS, *UNSPACED)) - WORDS
_split = re.compile("|".join(map(re.escape, UNSPACED)))
# Two to five single letters with dots between, or with dots behind and spaces between: s.r.l., s. r. l., sp. z o.o.
_dotted = re.compile(
    r"(?<![^\W_])(?:(?:sp\.? ?z ?|spol\.? ?s ?)?[^\W\d_](?:\.[^\W\d_]){1,4}\.?|[^\W\d_](?:\. [^\W\d_]){1,3}\.)"
    r"(?![^\W_])"
)
_slashed = re.compile(r"(?<![^\W_])[ais]/s(?![^\W_])")


def spell_forms(text: str) -> str:
    """Return a folded text with the dots taken out of legal forms, and a space on both sides of forms without one."""
    if "." in text:
        text = _dotted.sub(_without_dots, text)
    if "/s" in text:
        text = _slashed.sub(lambda form: form[0].replace("/", ""), text)
    return text if text.isascii() else _split.sub(r" \g<0> ", text)


def _without_dots(form: re.Match[str]) -> str:
    plain = form[0].replace(".", "").replace(" ", "")
    return f"{plain} " if plain in FORMS else form[0]
