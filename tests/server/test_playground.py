"""The page at /, in a real browser over a real server; and what a server says about it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from selenium.webdriver import ActionChains, Chrome, Keys
from test_predicting import saved

import gramvec
from conftest import MODELS
from gramvec.server.routes.pages import PAGE
from gramvec.server.settings import Settings
from support.browser import chromium
from support.http import PATIENCE, RunningServer, running, until

pytestmark = pytest.mark.slow

SOURCE, TARGET = "cheap flihgts to pariss", "low-cost air fares to Paris"
MARKUP = "<img src=x onerror=\"document.title='read as markup'\"><script>document.title='run'</script>"
KEY = "a-key-of-the-tests"


@pytest.fixture(scope="module")
def server(embedder: gramvec.Embedder) -> Iterator[RunningServer]:
    other = gramvec.load(MODELS / "charagram-phrase", device="cpu")
    with running(Settings(), [embedder, other]) as one:
        yield one
    other.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


class Page:
    def __init__(self, browser: Chrome, url: str) -> None:
        self.browser = browser
        self.url = url
        browser.get_log("browser")  # empties it
        browser.get(url + "/")

    def script(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def text(self, name: str) -> str:
        return str(self.script("return document.getElementById(arguments[0]).textContent", name))

    def write(self, name: str, text: str) -> None:
        self.script(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event(e.tagName === 'SELECT' ? 'change' : 'input'))",
            name,
            text,
        )

    def wait(self, condition: Callable[[], object]) -> None:
        try:
            until(condition)
        except AssertionError:
            raise AssertionError(self.script("return document.body.innerText")) from None

    def compare(self, source: str, target: str) -> None:
        """Type two texts, and wait until both are painted."""
        self.write("source", source)
        self.write("target", target)
        self.wait(lambda: (self.text("painted-source"), self.text("painted-target")) == (source, target))


@pytest.fixture
def page(browser: Chrome, server: RunningServer) -> Iterator[Page]:
    opened = Page(browser, server.url)
    opened.wait(lambda: opened.text("score") != "–")
    yield opened
    # Nothing was asked of anybody else, and nothing that the policy forbids was tried.
    asked = opened.script("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert asked
    assert all(one.startswith(opened.url + "/") for one in asked)
    for entry in browser.get_log("browser"):
        assert "Content Security Policy" not in entry["message"], entry
        assert "TrustedHTML" not in entry["message"], entry


def scores(server: RunningServer, body: dict[str, Any], **options: Any) -> Any:
    answer = httpx.post(f"{server.url}/similarity", json=body, timeout=PATIENCE, **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


def two_digits(score: float) -> str:
    """A number as the page writes it."""
    return f"{score:.2f}".replace("-0.00", "0.00").replace("-", "−")


def one_score(server: RunningServer, source: str, target: str, **body: Any) -> str:
    found = scores(server, {"inputs": {"source_sentence": source, "sentences": [target]}, **body})
    return two_digits(found[0])


def test_the_score_is_that_of_similarity_and_the_letters_are_colored(page: Page, server: RunningServer) -> None:
    for source, target in [(SOURCE, TARGET), ("not  bad\n at all", "👩‍👧 good é"), ("vehicals", "vehicles")]:
        page.compare(source, target)
        assert page.text("score") == one_score(server, source, target)
    colors = page.script(
        "return [...document.querySelectorAll('#painted-source span')].map((one) => [one.className,"
        "getComputedStyle(one).backgroundColor, getComputedStyle(one).textDecorationLine])"
    )
    named = {name: (color, line) for name, color, line in colors if name}
    assert "p4" in named
    assert all(color != "rgba(0, 0, 0, 0)" for color, _ in named.values())
    assert named["p4"][1] == "underline"  # for who sees no color
    said = httpx.post(
        f"{server.url}/explain",
        json={"inputs": {"source_sentence": "vehicals", "target_sentence": "vehicles"}},
        timeout=PATIENCE,
    ).json()
    assert words_listed(page) == [["+" + two_digits(said["words"][0]["contribution"]), "vehicals", "vehicles"]]
    first = said["features"][0]["contribution"]
    assert ngrams_shown(page)[0] == ["+" + two_digits(first), "␣v", "␣v"]  # opened where it is the only one
    assert page.text("coverage") == ""  # the model knows every letter
    assert page.text("verdict") == "Very similar"


def words_listed(page: Page) -> list[list[str]]:
    """The rows of pairs of words, and of what is left: what each adds, and its two texts."""
    return page.script(  # type: ignore[no-any-return]
        "return [...document.querySelectorAll('#pairs tbody tr:not(.ngram)')]"
        ".map(r => [...r.cells].slice(0, 3).map(c => c.textContent))"
    )


def ngrams_shown(page: Page) -> list[list[str]]:
    return page.script(  # type: ignore[no-any-return]
        "return [...document.querySelectorAll('#pairs tr.ngram:not([hidden])')]"
        ".map(r => [...r.cells].slice(0, 3).map(c => c.textContent))"
    )


def test_pairs_of_words_open_for_their_ngrams(page: Page, server: RunningServer) -> None:
    source = SOURCE + " now"
    page.compare(source, TARGET)
    found = httpx.post(
        f"{server.url}/explain",
        json={"inputs": {"source_sentence": source, "target_sentence": TARGET}, "top_k": 300},
        timeout=PATIENCE,
    ).json()
    expected = [(pair["source"]["text"], pair["target"]["text"]) for pair in found["words"][:12]]
    page.wait(lambda: [tuple(row[1:3]) for row in words_listed(page)[:12]] == expected)
    amounts = [float(row[0].replace("−", "-")) for row in words_listed(page)]
    assert sum(amounts) == pytest.approx(found["score"], abs=0.08)  # 14 rounded numbers
    assert ngrams_shown(page) == []
    first, second = page.browser.find_elements("css selector", "#pairs .open")[:2]
    first.send_keys(Keys.ENTER)
    assert first.get_attribute("aria-expanded") == "true"
    opened = ngrams_shown(page)
    assert 1 <= len(opened) <= 8
    word, other = expected[0]
    for _, left, right in opened:
        # An n-gram may lie over two words; a word says that it is one, and what is there twice how often.
        for one, text in ((left.split(" ")[0], word), (right.split(" ")[0], other)):
            assert any(part and part in text.lower() for part in one.split("␣")), (one, text)
    second.send_keys(Keys.SPACE)
    assert len(ngrams_shown(page)) > len(opened)
    page.compare(source, TARGET + " today")  # what is open stays open, and the focus where it was
    assert page.script("return document.activeElement.textContent") == expected[1][0]
    first, second = page.browser.find_elements("css selector", "#pairs .open")[:2]
    first.send_keys(Keys.ENTER)
    assert [one.get_attribute("aria-expanded") for one in (first, second)] == ["false", "true"]
    page.compare("zebra " + SOURCE, "\u05e9\u05dc\u05d5\u05dd \u4f60\u597d")  # n-grams that the model hardly knows
    assert ngrams_shown(page) == []


def test_one_requests_answer_per_text_typed(page: Page) -> None:
    """Letters that follow each other quickly are one request."""
    count = "return performance.getEntriesByType('resource').filter(e => e.name.endsWith('/explain')).length"
    before = page.script(count)
    field = page.browser.find_element("id", "source")
    field.clear()
    page.script("for (const c of 'quick') { const e = document.getElementById('source'); e.value += c;"
                "e.dispatchEvent(new Event('input')) }")  # fmt: skip
    page.wait(lambda: page.text("painted-source") == "quick")
    assert page.script(count) - before <= 2


def test_the_matrix(page: Page, server: RunningServer) -> None:
    lines = ["a fast car", MARKUP, "  ", "fast cars", "bananas"]
    page.write("several", "\n".join(lines))
    texts = [line for line in lines if line.strip()]
    rows = "return [...document.querySelectorAll('#matrix tbody tr')].map(r => [...r.children].map(c => c.textContent))"
    page.wait(lambda: [row[0][3:] for row in page.script(rows)] == texts)
    expected = scores(server, {"inputs": {"left": texts, "right": texts}})
    found = [[float(one.replace("−", "-")) for one in row[1:]] for row in page.script(rows)]
    assert found == [pytest.approx(row, abs=0.0051) for row in expected]
    page.write("several", "\n".join(f"text {i}" for i in range(20)))
    page.wait(lambda: page.text("several-note") == "The first 12 of 20 lines are shown.")
    page.write("several", "")
    page.wait(lambda: not page.browser.find_element("id", "matrix").is_displayed())


def test_the_curl_line_gives_the_same_answer_in_a_shell(page: Page, server: RunningServer) -> None:
    target = 'it\'s a "$HOME" `date` \\n\ttab\nnew line \u202e! 🙂'
    page.compare("don't", target)
    line = page.text("curl")
    assert "\u202e" not in line
    answer = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stdout
    assert json.loads(answer) == scores(server, {"inputs": {"source_sentence": "don't", "sentences": [target]}})
    assert page.text("score") == two_digits(json.loads(answer)[0])
    page.script("document.querySelector('details').open = true")
    page.browser.find_element("id", "copy").click()
    page.wait(lambda: page.text("copied").startswith(("Copied", "Select")))


def test_markup_is_text(page: Page) -> None:
    page.compare(MARKUP, MARKUP)
    assert page.script("return [document.title, document.images.length, document.scripts.length]") == [
        "gramvec", 0, 1
    ]  # fmt: skip
    assert MARKUP.replace('"', '\\"') in page.text("curl").replace("'\\''", "'")


def test_another_model(page: Page, server: RunningServer) -> None:
    page.wait(lambda: page.browser.find_element("id", "model").is_displayed())
    assert "gramvec-en" in page.text("card")
    assert "sources" in page.text("card")
    page.compare("vehicals", "vehicles")
    page.write("model", "charagram-phrase")
    expected = one_score(server, "vehicals", "vehicles", model="charagram-phrase")
    assert expected != one_score(server, "vehicals", "vehicles")
    page.wait(lambda: page.text("score") == expected)
    assert "charagram-phrase" in page.text("card")
    assert '"model":"charagram-phrase"' in page.text("curl")
    page.write("model", "gramvec-en")


def test_a_word_that_occurs_twice_is_one_row(page: Page) -> None:
    page.compare("new york new york", "york")
    page.wait(lambda: len(words_listed(page)) >= 2)
    rows = [row[1:] for row in words_listed(page)]
    assert ["york", "york ×2"] in rows
    assert len({tuple(row) for row in rows}) == len(rows)


def test_examples_fill_the_fields(page: Page, server: RunningServer) -> None:
    for button in page.browser.find_elements("css selector", "#examples button"):
        button.click()
        source, target = (page.script(f"return document.getElementById('{one}').value") for one in ("source", "target"))
        page.wait(lambda source=source, target=target: page.text("score") == one_score(server, source, target))


def test_two_lists_are_matched(page: Page, server: RunningServer) -> None:
    page.browser.find_element("id", "tab-lists").click()
    left, right = ["canon sd1100", "nikon s8100", MARKUP], ["Nikon S8100 black", "garden hose", "CANON SD1100 IS"]
    page.write("left", "\n".join([*left, " "]))
    page.write("right", "\n".join(right))
    rows = (
        "return [...document.querySelectorAll('#matches tbody tr')].map(r => [...r.children].map(c => c.textContent))"
    )

    def expected(**options: Any) -> list[list[str]]:
        body = {"left": left, "right": right, **options}
        found = httpx.post(f"{server.url}/match", json=body, timeout=PATIENCE).json()["matches"]
        best_first = sorted(found, key=lambda one: -one["score"])
        return [[two_digits(one["score"]), left[one["left"]], right[one["right"]]] for one in best_first]

    page.wait(lambda: page.script(rows) == expected())
    assert page.text("lists-note") == "2 of 3 have a match."
    assert page.text("unmatched") == f"Without a match: {MARKUP}"
    marked = page.script("return [...document.querySelectorAll('#matches b')].map(e => e.textContent)")
    assert {"canon", "sd1100", "CANON", "SD1100", "nikon", "s8100", "Nikon", "S8100"} == set(marked)
    page.wait(lambda: page.script("return document.querySelectorAll('#histogram svg rect').length") > 0)
    assert page.script(rows) == expected()
    slider = page.browser.find_element("css selector", "#histogram input")
    assert slider.accessible_name == "Threshold"
    slider.send_keys(Keys.HOME)
    page.wait(lambda: page.script(rows) == expected(threshold=0))
    slider.send_keys(Keys.END)
    page.wait(lambda: page.text("lists-note") == "0 of 3 have a match.")
    page.write("left", "nikon s8100\nnikon s8100 silver")
    page.write("right", "nikon s8100")
    page.wait(lambda: page.text("lists-note") == "2 of 2 have a match.")
    page.browser.find_element("id", "once").click()
    page.wait(lambda: page.text("lists-note") == "1 of 2 have a match.")
    saved = page.script(
        "const made = []; const kept = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { made.push(blob); return kept(blob); };"
        "document.getElementById('csv').click(); URL.createObjectURL = kept; window.saved = made[0]; return made.length"
    )
    assert saved == 1
    text = page.browser.execute_async_script("window.saved.text().then(arguments[0])")
    assert text.startswith('left,right,score\r\n"nikon s8100","nikon s8100",')
    page.write("left", "")
    page.wait(lambda: page.text("lists-note") == "")


def test_a_served_index_is_searched_and_what_matched_is_marked(
    browser: Chrome, embedder: gramvec.Embedder, tmp_path: Path
) -> None:
    records = [{"text": "lost parcel", "team": "post"}, {"text": "reset my password", "team": "web"}, {"text": MARKUP}]
    index = gramvec.Index.build(tmp_path / "things", records, model=embedder)
    with running(Settings.model_validate({"index": (f"things={index.path}",)}), embedder) as server:
        page = Page(browser, server.url)
        tab = browser.find_element("id", "tab-search")
        page.wait(tab.is_displayed)
        tab.click()
        hits = "return [...document.querySelectorAll('#hits p')].map((one) => one.textContent)"
        page.wait(lambda: page.script("return document.getElementById('query').value") and page.script(hits))
        page.write("query", "pasword reset")
        page.wait(lambda: page.script(hits)[:1] == ["reset my password"])
        marked = page.script(
            "return [...document.querySelector('#hits p').querySelectorAll('b')].map(e => e.textContent)"
        )
        assert marked == ["reset", "pas", "sword"]
        assert "team: web" in page.text("hits")
        assert page.script("return document.images.length") == 0
        page.write("query", "")
        page.wait(lambda: page.text("hits") == "")


def test_texts_are_labeled_where_a_head_is_served(browser: Chrome, small: gramvec.Embedder, tmp_path: Path) -> None:
    words = ["card lost", "parcel late", MARKUP]
    saved(tmp_path / "x.head", small, labels=tuple(words))
    with running(Settings.model_validate({"head": (f"intents={tmp_path / 'x.head'}",)}), small) as server:
        page = Page(browser, server.url)
        tab = browser.find_element("id", "tab-labels")
        page.wait(tab.is_displayed)
        tab.click()
        page.write("unlabeled", "card lost\n\nparcel late " + "so very " * 60 + "\n" + MARKUP)
        rows = "return [...document.querySelectorAll('#labeled tbody tr')].map((one) => one.children[1].textContent)"
        page.wait(lambda: len(page.script(rows)) == 3)
        assert page.script(rows)[0].startswith("card lost")
        assert "text" in page.text("labels-note")
        assert page.script("return document.images.length") == 0
        folded = page.script("return [...document.querySelectorAll('#labeled details')].map((one) => one.open)")
        assert folded == [False]
        page.write("unlabeled", "")
        page.wait(lambda: not browser.find_element("id", "labeled").is_displayed())


def test_long_lists_are_matched_whole(page: Page) -> None:
    left = [f"camera number {number}" for number in range(450)]
    page.browser.find_element("id", "tab-lists").click()
    page.write("right", "\n".join(reversed(left)))
    page.write("left", "\n".join(left))
    page.wait(lambda: page.text("lists-note").startswith("450 of 450 have a match."))
    assert page.text("lists-note").endswith("matches are shown; the CSV has all.")
    assert page.script("return document.querySelectorAll('#matches tbody tr').length") == 300
    assert page.script("return found.matches.length") >= 450
    page.write("left", "\n".join(left * 3))
    page.wait(lambda: "1800 texts" in page.text("lists-fault") or page.text("lists-note").startswith("1,350"))


def test_without_an_index_there_is_no_search_and_without_a_head_no_labels(page: Page) -> None:
    assert not page.browser.find_element("id", "tab-search").is_displayed()
    assert not page.browser.find_element("id", "tab-labels").is_displayed()


def test_tabs_are_chosen_by_arrows(page: Page) -> None:
    page.browser.find_element("id", "tab-compare").send_keys(Keys.ARROW_RIGHT)
    assert page.browser.find_element("id", "lists").is_displayed()
    assert not page.browser.find_element("id", "compare").is_displayed()
    assert page.script("return document.activeElement.id") == "tab-lists"
    page.browser.find_element("id", "tab-lists").send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert page.browser.find_element("id", "about").is_displayed()


def test_errors_are_shown_as_sentences(page: Page, server: RunningServer) -> None:
    long = "one two three " * 400
    page.write("source", long)
    page.wait(lambda: page.text("fault"))
    assert page.text("fault") == ("The first text has 5600 characters, and explanations take 4096: shorten it.")
    page.wait(lambda: page.text("score") == one_score(server, long, TARGET))  # compared all the same
    assert not page.browser.find_element("id", "explanation").is_displayed()
    page.compare("\ue000", "a cat")
    assert page.text("score") == "0.00"
    assert page.text("fault") == ""
    assert "knows nothing of the first text, so it is similar to nothing. It knows English only." in page.text(
        "coverage"
    )
    page.write("source", "")
    page.wait(lambda: page.text("coverage") == "Type two texts.")
    assert page.text("score") == "–"
    assert not page.browser.find_element("id", "explanation").is_displayed()
    page.write("several", "x\n" + "y" * 70_000)
    page.wait(lambda: page.text("several-fault").startswith("Line 2 has 70000 characters"))


def test_the_keyboard_is_enough(page: Page, server: RunningServer) -> None:
    reached = []
    keyboard = ActionChains(page.browser)
    page.script("document.activeElement.blur()")
    last = "Similarity of every text to every other"
    page.script("document.querySelector('details').open = true")
    while last not in reached and len(reached) < 50:
        keyboard.send_keys(Keys.TAB).perform()
        name = page.script("const e = document.activeElement; return e.id || e.ariaLabel || e.tagName")
        reached.append(name)
        assert page.script("return getComputedStyle(document.activeElement).outlineStyle") == "solid", name
        if name == "source":
            keyboard.key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).send_keys("vehicals").perform()
        elif name == "target":
            keyboard.key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).send_keys("vehicles").perform()
        elif name == "copy":
            keyboard.send_keys(Keys.ENTER).perform()
    order = [
        "model",
        "source",
        "target",
        "painted-source",
        "painted-target",
        "Pairs of words",
        "copy",
        "several",
    ]
    assert [name for name in reached if name in order] == order
    page.wait(lambda: page.text("score") == one_score(server, "vehicals", "vehicles"))
    page.wait(lambda: page.text("copied"))
    unnamed = page.script(
        "return [...document.querySelectorAll('input, textarea, select')].filter((one) => !one.labels.length).length"
    )
    assert unnamed == 0
    assert page.browser.find_element("id", "score").get_attribute("aria-live") == "polite"


@pytest.mark.parametrize("width", [360, 820])
def test_no_sideways_scrolling_on_a_narrow_screen(page: Page, width: int) -> None:
    metrics = {"width": width, "height": 780, "deviceScaleFactor": 2, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        word = "donaudampfschifffahrtsgesellschaft" * 8
        page.compare(word, f"{word} {word}")
        page.write("several", "\n".join([word] * 12))
        page.wait(lambda: page.script("return document.querySelectorAll('#matrix td').length") > 140)
        # The matrix scrolls by itself, and its labels are whole.
        region = "document.querySelector('#matrix').parentElement"
        assert page.script(f"return {region}.scrollWidth > {region}.clientWidth")
        assert page.script(
            "return [...document.querySelectorAll('#matrix tbody th')].every(e => e.scrollWidth <= e.clientWidth)"
        )
        assert page.script("return [innerWidth, document.documentElement.scrollWidth]") == [width, width]
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_ink_on_every_tint_can_be_read(page: Page, scheme: str) -> None:
    """WCAG 2.2, 1.4.3: a contrast of at least 4.5, in the light and in the dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    names = [
        "ink",
        "soft",
        "accent",
        "bad",
        "page",
        "card",
        *(f"{sign}{step}" for sign in "pn" for step in range(1, 5)),
    ]
    value = "const s = getComputedStyle(document.documentElement);"
    hexes = page.script(f"{value} return arguments[0].map((one) => s.getPropertyValue('--' + one).trim())", names)
    light = {name: luminance(color) for name, color in zip(names, hexes, strict=True)}
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert (light["page"] > 0.5) == (scheme == "light")
    pairs = [("ink", tint) for tint in names[4:]] + [(text, ground) for text in names[1:4] for ground in names[4:6]]
    for text, ground in pairs:
        darker, lighter = sorted([light[text], light[ground]])
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (scheme, text, ground)


def luminance(color: str) -> float:
    """The relative luminance of #rgb or #rrggbb (WCAG 2.2)."""
    digits = color[1:] if len(color) == 7 else "".join(one * 2 for one in color[1:])
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_server_with_a_key(browser: Chrome, embedder: gramvec.Embedder) -> None:
    with running(Settings.model_validate({"api_key": [KEY]}), embedder) as server:
        page = Page(browser, server.url)
        field = browser.find_element("id", "key")
        page.wait(field.is_displayed)
        page.wait(lambda: page.text("fault") and page.text("card-fault"))
        assert page.text("fault") == page.text("card-fault") == "This server needs an API key: enter it above."
        assert "$GRAMVEC_API_KEY" in page.text("curl")
        field.send_keys("wröng")
        page.wait(lambda: page.text("fault").startswith("A key is printable ASCII"))
        field.clear()
        field.send_keys("wrong")
        page.wait(lambda: "API key" in page.text("fault") and "wrong" in page.text("fault"))
        field.clear()
        field.send_keys(KEY)
        page.wait(lambda: page.text("score") != "–")
        page.wait(lambda: page.text("fault") == "" and "gramvec-en" in page.text("card"))
        line = page.text("curl")
        assert KEY not in line
        environment = {**os.environ, "GRAMVEC_API_KEY": KEY}
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, env=environment)
        assert two_digits(json.loads(done.stdout)[0]) == page.text("score")
        kept = page.script("return [localStorage.length, sessionStorage.length, document.cookie, location.href]")
        assert kept == [0, 0, "", server.url + "/"]
    page.write("source", "is anybody there")
    page.wait(lambda: page.text("fault") == "The server does not answer.")


def test_the_page_is_whole_and_small_and_its_policy_strict(server: RunningServer) -> None:
    answer = httpx.get(server.url + "/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.content == PAGE
    assert len(PAGE) < 60_000
    text = PAGE.decode()
    assert not re.search(
        r"https?://|\b(src|href)=\"(?!docs|data:)|@import|\burl\(|innerHTML|insertAdjacent|eval\(", text
    )
    policy = answer.headers["content-security-policy"]
    for name in ("script", "style"):
        (content,) = re.findall(rf"<{name}>(.*?)</{name}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        allowed = "'self' " if name == "script" else ""
        assert f"{name}-src {allowed}'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    head = httpx.head(server.url + "/")
    assert (head.status_code, head.content) == (200, b"")
    again = httpx.get(server.url + "/", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    script = httpx.get(server.url + "/plots.js")
    assert (script.status_code, script.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    again = httpx.get(server.url + "/plots.js", headers={"if-none-match": script.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
