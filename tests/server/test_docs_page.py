"""The page at /docs in a real browser: it opens without a network, and its examples run at a click."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from support.browser import chromium
from support.http import RunningServer, until


@pytest.fixture(scope="module")
def server(plain_server: RunningServer) -> RunningServer:
    return plain_server


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def test_the_page_lets_nobody_else_in(server: RunningServer) -> None:
    answer = httpx.get(f"{server.url}/docs")
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert (policy["default-src"], policy["frame-ancestors"], policy["base-uri"]) == ("'none'",) * 3
    assert policy["connect-src"] == "'self'"
    (script,) = re.findall(rb"<script>(.*?)</script>", answer.content, re.DOTALL)
    assert policy["script-src"] == f"'self' 'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
    (style,) = re.findall(rb"<style>(.*?)</style>", answer.content, re.DOTALL)
    assert policy["style-src"] == f"'self' 'sha256-{base64.b64encode(hashlib.sha256(style).digest()).decode()}'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-content-type-options"] == "nosniff"


def found(browser: Chrome, selector: str) -> list[Any]:
    return browser.find_elements(By.CSS_SELECTOR, selector)


def answer_to_a_click(browser: Chrome) -> str:
    """The text of the table of answers; the page takes clicks only after its scripts are done."""
    browser.execute_script("document.querySelector('.opblock-body .execute').click()")
    time.sleep(0.2)
    return " ".join(str(table.get_attribute("textContent")) for table in found(browser, ".live-responses-table"))


def test_every_route_is_shown_and_an_example_runs_at_a_click(browser: Chrome, server: RunningServer) -> None:
    browser.get(f"{server.url}/docs")
    until(lambda: len(found(browser, ".opblock")) >= 12)
    paths = {element.get_attribute("data-path") for element in found(browser, ".opblock-summary-path")}
    assert {"/embed", "/similarity", "/v1/embeddings", "/v1/models", "/health", "/ready", "/info"} <= paths
    browser.execute_script("document.querySelector('[id$=create_embeddings] .opblock-summary-control').click()")
    until(lambda: found(browser, ".opblock-body .execute"))
    until(lambda: "prompt_tokens" in answer_to_a_click(browser))
    answered = browser.execute_script("return document.querySelector('.live-responses-table').textContent")
    assert '"prompt_tokens": 4' in answered
    assert "200" in answered
    folded = found(browser, ".opblock-body details")
    assert len(folded) == 10
    assert not folded[0].find_element(By.CSS_SELECTOR, ".headers").is_displayed()
    folded[0].find_element(By.TAG_NAME, "summary").click()
    assert "x-request-id" in folded[0].find_element(By.CSS_SELECTOR, ".headers").text
    asked = browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    outside = [name for name in asked if not name.startswith((server.url, "data:"))]
    assert outside == []
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_light_or_dark_as_the_browser_prefers(browser: Chrome, server: RunningServer, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        browser.get(f"{server.url}/docs")
        until(lambda: found(browser, ".opblock .opblock-summary-path"))
        shades = browser.execute_script(
            "return [document.body, document.querySelector('.opblock-summary-path'), document.querySelector('.info p')]"
            ".map((one, at) => getComputedStyle(one)[at ? 'color' : 'backgroundColor'].match(/[0-9.]+/g).map(Number))"
        )
        light = [sum(shade[:3]) / 3 for shade in shades]
        if scheme == "dark":
            assert light[0] < 60 and min(light[1:]) > 150
        else:
            assert shades[0] == [0, 0, 0, 0] and max(light[1:]) < 100
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
