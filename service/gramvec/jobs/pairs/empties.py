"""Cells that say that nothing is known: N/A, unknown, keine Angabe, 不明, a dash, a question mark.

Some of these are also values: NA is Namibia's code, None a name. They are content where the column's other values make
them plausible: where nearly all are words of as many letters, or where the value stands once among words that do not
repeat. A text of punctuation alone is empty unless half of the column's values are such (test results, + and -).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramvec.text.arrays import Bools, Int64s
from gramvec.text.folding import fold_letters

_SURE = """
n/a;n.a.;n.a;#n/a;#na;#null!;#value!;#ref!;(n/a);<na>;n / a;n\\a;\\n;(null);<null>;[null];(none);<none>;[none]
(blank);(empty);(unknown);(missing)
unknown;unkown;unspecified;undefined;undisclosed;undetermined;unavailable;not available;not applicable;not known
not specified;not provided
not given;not stated;not recorded;not set;no data;no value;no information;no info;none given;none provided
information not available;data not available
tbd;t.b.d.;tba;t.b.a.;tbc;to be determined;to be announced;to be confirmed;to be defined;see above;same as above
as above;xxxx;xxxxx
unbekannt;k.a.;k. a.;k.a;keine angabe;keine angaben;nicht bekannt;nicht angegeben;nicht verfügbar
nicht vorhanden;nicht zutreffend;entfällt;o.a.;o. a.;ohne angabe
inconnu;inconnue;n.c.;non communiqué;non renseigné;non renseignée;non disponible;non précisé;non spécifié
non applicable;néant;sans objet;s.o.;pas disponible
desconocido;desconocida;no disponible;no aplica;sin datos;sin información;sin especificar;s/d;s.d.;s/n;no consta
no informado
desconhecido;desconhecida;não informado;não disponível;não aplicável;não se aplica;sem informação;sem dados;n/d
n.d.;n.d
sconosciuto;sconosciuta;non disponibile;non applicabile;non specificato;non noto;nessun dato
onbekend;nvt;n.v.t.;niet beschikbaar;niet van toepassing;niet bekend;geen gegevens
okänd;okänt;saknas;uppgift saknas;ej angivet;ej tillämpligt;ukendt;ikke oplyst;ukjent;ikke oppgitt
ikke tilgjengelig;tuntematon;ei tiedossa;ei saatavilla
nieznany;nieznana;nieznane;brak danych;b/d;b.d.;nie dotyczy;nie podano;neznámý;neznámá;neuvedeno
není k dispozici;neznámy;neuvedené;ismeretlen;nincs adat
necunoscut;necunoscută;nespecificat;nu se aplică;nepoznato;nepoznat;neznano;bilinmiyor;belirtilmemiş
mevcut değil;nežinoma;nezināms;teadmata
неизвестно;неизвестен;неизвестна;нет данных;н/д;не указано;не указан;не указана;отсутствует;не применимо
невідомо;немає даних;не вказано;неизвестно;няма данни
άγνωστο;άγνωστος;μη διαθέσιμο;δ/υ
不明;未詳;該当なし;なし;不詳;未定;未記入;未知;不詳;无;無;暂无;無資料;不适用;未提供;未填写;미상;없음;알 수 없음
해당없음;해당 없음;정보 없음
غير معروف;غير متوفر;غير متاح;لا يوجد;לא ידוע;אין;अज्ञात;उपलब्ध नहीं;ไม่ทราบ;ไม่ระบุ;không rõ;không có
tidak diketahui;tidak ada
"""
# These are also names, codes or words.
_DOUBTFUL = """
na;nan;null;none;nil;nd;nc;ns;nr;nk;n;ka;sd;so;void;empty;missing;blank;brak;nema;žádný;keine;keiner;kein;aucun
aucune;ninguno;ninguna;nenhum;nenhuma
nessuno;nessuna;geen;ingen;inga;ei;yok;nincs;nt;x;xx;xxx;нет;немає;няма;other;sans;unk;ukn;0000-00-00;00.00.0000
00/00/0000
"""


def _read_names(table: str) -> frozenset[str]:
    return frozenset(fold_letters(name) for line in table.strip().splitlines() for name in line.split(";"))


SURE, DOUBTFUL = _read_names(_SURE), _read_names(_DOUBTFUL) - {"n", "other", "x", "so"}
_PLACEHOLDERS = frozenset("-?._/ ")
# Share of a column's other values that have as many letters, from which a doubtful word is a code.
CODES = 0.8
# Values that are needed to call a word plausible among them.
FEWEST = 3


def find_empty(texts: Sequence[str], counts: Int64s) -> Bools:
    """Return which values of a column say that nothing is known, bool[v].

    Args:
        texts: the folded different values of the column.
        counts: int64[v], rows of each.
    """
    symbols = np.array([not any(map(str.isalnum, text)) for text in texts], np.bool_)
    empty = symbols.copy()
    filled = int(counts[[bool(text) for text in texts]].sum())
    signs = [text for text in texts if text and not any(map(str.isalnum, text))]
    if 2 * int(counts[symbols].sum()) >= filled and any(set(text) - _PLACEHOLDERS for text in signs):
        empty = np.array([not text for text in texts], np.bool_)
    doubtful = []
    for at, text in enumerate(texts):
        if text in SURE:
            empty[at] = True
        elif text in DOUBTFUL:
            doubtful.append(at)
    if doubtful:
        words = [text for text in texts if text and text not in SURE and text not in DOUBTFUL]
        for at in doubtful:
            empty[at] = not _is_plausible(texts[at], int(counts[at]), words, int(counts.max()))
    return empty


def _is_plausible(text: str, count: int, words: Sequence[str], most: int) -> bool:
    if not text.isalpha() or len(words) < FEWEST:
        return False
    alike = sum(word.isalpha() and len(word) == len(text) for word in words)
    if alike >= CODES * len(words):
        return True
    alone = sum(map(str.isalpha, words))
    return count == 1 and most <= 2 and alone >= CODES * len(words)
