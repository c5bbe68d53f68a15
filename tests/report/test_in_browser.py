"""The page in a real Chromium: it draws every section, counts again, runs nothing of its texts, and loads nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from report_cases import large_report, whole_report
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser_support import chromium
from gramvec.report import JobReport, write_page

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("width", [360, 1100])
def test_nothing_is_wider_than_the_screen(browser: Chrome, tmp_path: Path, width: int):
    browser.set_window_size(width, 900)
    show(browser, tmp_path, whole_report())
    wide, shown = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= shown


def test_a_large_job_opens(browser: Chrome, tmp_path: Path):
    show(browser, tmp_path, large_report(100_000))
    assert len(browser.find_elements(By.CSS_SELECTOR, ".pair")) == 90
