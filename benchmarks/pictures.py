"""Pictures of pages for the documentation, light and dark: make pictures.

A report of `gramvec dedupe` and a page of `gramvec review` on the early childhood sites of development data, drawn by
Chromium. The truth answers the review's questions.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

TABLE = "early-childhood.csv"
WIDTH, REPORT_HEIGHT, REVIEW_HEIGHT = 1000, 980, 760
ANSWERS = 40
MAX_BYTES = 200_000
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage")


@click.command()
@click.argument("data", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("images", type=click.Path(path_type=Path, exists=True, file_okay=False))
def main(data: Path, images: Path) -> None:
    """Draw the pictures of the DATA of development into the folder IMAGES."""
    with tempfile.TemporaryDirectory() as name, open_browser(Path(name)) as browser:
        folder = Path(name)
        shutil.copy(data / "dedupe" / TABLE, folder)
        columns = ["--on", "name", "--on", "address"]
        command = [sys.executable, "-m", "gramvec"]
        report = [*command, "dedupe", TABLE, *columns, "--keep", "sites.csv", "--report", "report.html"]
        subprocess.run(report, cwd=folder, check=True, stderr=subprocess.DEVNULL)
        draw(browser, (folder / "report.html").as_uri(), REPORT_HEIGHT, images / "report")
        with subprocess.Popen(
            [*command, "review", TABLE, *columns], cwd=folder, stderr=subprocess.PIPE, text=True
        ) as running:
            try:
                address = read_address(running)
                answer_questions(address, folder / TABLE)
                draw(browser, address, REVIEW_HEIGHT, images / "review")
            finally:
                running.terminate()


@contextmanager
def open_browser(folder: Path) -> Iterator[Chrome]:
    """Open a Chromium with a new profile."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    browser = Chrome(options=options, service=ChromeService(shutil.which("chromedriver") or "chromedriver"))
    try:
        yield browser
    finally:
        browser.quit()


def draw(browser: Chrome, address: str, height: int, picture: Path) -> None:
    """Write PICTURE-light.png and PICTURE-dark.png of the top of a page. Raises SystemExit if one is too large."""
    size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(address)
        while browser.execute_script("return document.body.dataset.ready") != "true":
            time.sleep(0.05)
        path = picture.with_name(f"{picture.name}-{scheme}.png")
        browser.save_screenshot(str(path))
        if path.stat().st_size > MAX_BYTES:
            raise SystemExit(f"{path}: has {path.stat().st_size:,} bytes, and a picture has at most {MAX_BYTES:,}")


def read_address(running: subprocess.Popen[str]) -> str:
    """Return the address that a review prints."""
    for line in running.stderr or ():
        if found := re.search(r"http://\S+/", line):
            return found[0]
    raise SystemExit("gramvec review ended without an address")


def answer_questions(address: str, table: Path) -> None:
    """Answer questions by the clusters of the table, and wait for what is learned from them."""
    with table.open(encoding="utf-8", newline="") as file:
        cluster = {row["id"]: row["cluster"] for row in csv.DictReader(file)}
    state = ask(address + "state")
    for _ in range(ANSWERS):
        question = state["question"]
        same = cluster[question["pair"]["left"]] == cluster[question["pair"]["right"]]
        state = ask(address + "answers", {"id": question["id"], "answer": "yes" if same else "no"})
    while ask(address + "state")["learning"]:
        time.sleep(0.2)


def ask(address: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the answer of the page's server."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as response:
        found: dict[str, Any] = json.load(response)
    return found


if __name__ == "__main__":
    main()
