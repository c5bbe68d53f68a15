"""The page in a real Chromium: it draws every section, counts again, runs nothing of its texts, and loads nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from gramvec.jobs.report import JobReport, ScoreHistogram, write_page
from support.browser import chromium
from support.reports import large_report, whole_report

pytestmark = pytest.mark.slow

# The contrast of each element's text with what is behind it, by relative luminance.
CONTRASTS = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const luminance = (colors) => {
  canvas.clearRect(0, 0, 1, 1);
  for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
  const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((one) => one / 255)
    .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
return arguments[0].filter((element) => element.textContent.trim()).map((element) => {
  const behind = [];
  for (let at = element; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
  const [one, other] = [luminance(behind), luminance([...behind, getComputedStyle(element).color])];
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
});
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def show(browser: Chrome, folder: Path, report: JobReport) -> None:
    path = folder / "report.html"
    write_page(report, path)
    browser.get(path.as_uri())
    assert browser.find_element(By.TAG_NAME, "body").get_attribute("data-ready") == "true"
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_every_section_is_drawn_and_texts_do_nothing(browser: Chrome, tmp_path: Path):
    show(browser, tmp_path, whole_report())
    assert len(browser.find_elements(By.TAG_NAME, "section")) == 11
    assert len(browser.find_elements(By.CSS_SELECTOR, "figure svg[role=img]")) == 5
    assert browser.title == "Matches of left.csv and right.csv"
    assert browser.find_elements(By.TAG_NAME, "img") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert all(figure.get_attribute("aria-label") for figure in browser.find_elements(By.CSS_SELECTOR, "svg[role=img]"))


def test_the_slider_counts_again_by_keyboard(browser: Chrome, tmp_path: Path):
    show(browser, tmp_path, whole_report())
    counts = browser.find_element(By.CSS_SELECTOR, ".counts")
    assert counts.text.startswith("60 pairs")
    slider = browser.find_element(By.ID, "threshold")
    slider.send_keys(Keys.HOME)
    assert counts.text.startswith("1,000 pairs")
    slider.send_keys(Keys.END)
    assert counts.text.startswith("0 pairs")
    expected = browser.execute_script("return countFrom(report.scores, 0.5)")
    assert expected["above"] == 60
    assert expected["precision"] == pytest.approx(0.9005)
    assert expected["recall"] == pytest.approx(60 * 0.9005 / (60 * 0.9005 + 40 * 0.4005 + 900 * 0.0505))


def test_the_threshold_of_the_job_counts_what_the_job_did(browser: Chrome, tmp_path: Path):
    """It lies within a bin of the histogram, and the slider stands at the nearest thousandth."""
    scores = ScoreHistogram.from_scores([0.4696, 0.4698, 0.4699, 0.9], 0.4698)
    show(browser, tmp_path, replace(whole_report(), scores=scores))
    counts = browser.find_element(By.CSS_SELECTOR, ".counts")
    assert counts.text.startswith("3 pairs")
    slider = browser.find_element(By.ID, "threshold")
    slider.send_keys(Keys.ARROW_LEFT)
    assert counts.text.startswith("4 pairs")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert counts.text.startswith("3 pairs")


def test_the_first_lines_lead_to_what_looks_doubtful(browser: Chrome, tmp_path: Path):
    report = whole_report()
    show(browser, tmp_path, report)
    assert browser.find_element(By.CSS_SELECTOR, "header").text.endswith("Nothing looks doubtful.")
    doubtful = replace(report.pairs[0], doubt="1 pair with other numbers")
    labels = replace(report.texts[0], doubt="1 wrong answer")
    show(browser, tmp_path, replace(report, pairs=[doubtful], texts=[labels]))
    header = browser.find_element(By.CSS_SELECTOR, "header")
    assert header.text.endswith("To look at: 1 pair with other numbers and 1 wrong answer.")
    for link, title in zip(header.find_elements(By.TAG_NAME, "a"), (doubtful.title, labels.title), strict=True):
        target = browser.find_element(By.ID, str(link.get_dom_attribute("href"))[1:])
        assert target.text == title


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1100])
def test_nothing_is_wider_than_the_screen_or_of_low_contrast(browser: Chrome, tmp_path: Path, width: int, scheme: str):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    show(browser, tmp_path, whole_report())
    wide, shown = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= shown
    texts = browser.find_elements(
        By.CSS_SELECTOR, "h1, h2, p, a, .soft, dt, dd, th, td, mark, summary, .ids, .name, .note, label, output"
    )
    assert min(browser.execute_script(CONTRASTS, texts)) >= 4.5  # WCAG 2.2, AA
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_everything_has_a_name_for_screen_readers(browser: Chrome, tmp_path: Path):
    show(browser, tmp_path, whole_report())
    named = browser.find_elements(By.CSS_SELECTOR, "section, input, summary, svg[role=img], main h1, main h2")
    assert all(element.accessible_name for element in named)
    assert {element.aria_role for element in browser.find_elements(By.CSS_SELECTOR, "section")} == {"region"}
    assert len(browser.find_elements(By.TAG_NAME, "main")) == len(browser.find_elements(By.TAG_NAME, "h1")) == 1


def test_a_large_job_opens(browser: Chrome, tmp_path: Path):
    show(browser, tmp_path, large_report(100_000))
    assert (tmp_path / "report.html").stat().st_size < 3_000_000
    assert len(browser.find_elements(By.CSS_SELECTOR, ".pair")) == 90
    assert sum(pair.is_displayed() for pair in browser.find_elements(By.CSS_SELECTOR, ".pair")) == 20
    more = next(one for one in browser.find_elements(By.TAG_NAME, "summary") if one.text == "70 more")
    browser.execute_script("arguments[0].click()", more)
    assert sum(pair.is_displayed() for pair in browser.find_elements(By.CSS_SELECTOR, ".pair")) == 90
