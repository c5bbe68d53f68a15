"""Pictures of pages for the documentation, light and dark: make pictures.

Reports of `gramvec match` and `gramvec dedupe`, the page at / of a service, and pages of `gramvec review`, on data of
development, drawn by Chromium. The truth answers the reviews' questions.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By

TABLE, JOIN, INTENTS = "early-childhood.csv", "Hospital", "hwu64"
SITE_COLUMNS = ("--on", "name", "--on", "address")
# Typed into the search, a letter at a time; words are misspelt on purpose.
QUERY = "salvaton army childcre"
WIDTH, REPORT_HEIGHT, REVIEW_HEIGHT, LABELS_HEIGHT = 1000, 780, 870, 860
COMPARE_HEIGHT, SEARCH_HEIGHT = 860, 690
ANSWERS, LABELS, PER_LABEL = 40, 25, 2
MAX_BYTES, MAX_SECONDS = 100_000, 60
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage")
GRAMVEC = [sys.executable, "-m", "gramvec"]
# True where the page has drawn what it was asked for.
READY = "return document.body.dataset.ready === 'true'"
COMPARED = "return document.querySelectorAll('#painted-source span').length > 0"
HITS = "return document.querySelectorAll('#hits li').length > 0"
FOUND = "return document.getElementById('hits').textContent.includes('Salvation Army')"


@click.command()
@click.argument("data", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("images", type=click.Path(path_type=Path, exists=True, file_okay=False))
def main(data: Path, images: Path) -> None:
    """Draw the pictures of the DATA of development into the folder IMAGES."""
    with tempfile.TemporaryDirectory() as name, open_browser(Path(name)) as browser:
        folder = Path(name)
        shutil.copy(data / "dedupe" / TABLE, folder)
        draw_reports(browser, folder, data, images)
        draw_page(browser, folder, images)
        draw_pairs(browser, folder, images)
        draw_labels(browser, folder, data / "classification" / INTENTS / "train.tsv", images)


def draw_reports(browser: Chrome, folder: Path, data: Path, images: Path) -> None:
    """Draw the reports of a match of hospitals and of the duplicates among sites."""
    for side in ("left", "right"):
        shutil.copy(data / "joins" / JOIN / f"{side}.csv", folder / f"{side}.csv")
    run(folder, "match", "left.csv", "right.csv", "--on", "title", "-o", "matches.csv", "--report", "matches.html")
    draw(browser, (folder / "matches.html").as_uri(), REPORT_HEIGHT, images / "matches")
    run(folder, "dedupe", TABLE, *SITE_COLUMNS, "--unique", "sites.csv", "--report", "duplicates.html")
    draw(browser, (folder / "duplicates.html").as_uri(), REPORT_HEIGHT, images / "duplicates")


def draw_page(browser: Chrome, folder: Path, images: Path) -> None:
    """Draw the page at / of a service: two texts that are compared, and a search as somebody types."""
    run(folder, "index", "build", TABLE, "--column", "name", "--id", "id", "-o", "sites.index")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}/"
    command = [*GRAMVEC, "serve", "--port", str(port), "--index", "sites=sites.index"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            wait_for(lambda: is_ready(address))
            draw(browser, address, COMPARE_HEIGHT, images / "compare", COMPARED)

            def search() -> None:
                tab = browser.find_element(By.ID, "tab-search")
                wait_for(tab.is_displayed)
                tab.click()
                wait_for(lambda: bool(browser.execute_script(HITS)))  # of the example that the page begins with
                field = browser.find_element(By.ID, "query")
                field.clear()
                field.send_keys(QUERY)

            draw(browser, address, SEARCH_HEIGHT, images / "search", FOUND, search)
        finally:
            running.terminate()


def draw_pairs(browser: Chrome, folder: Path, images: Path) -> None:
    """Draw the review of pairs of sites, answered by their clusters."""
    with (folder / TABLE).open(encoding="utf-8", newline="") as file:
        cluster = {row["id"]: row["cluster"] for row in csv.DictReader(file)}

    def answer(question: dict[str, Any]) -> str:
        return "yes" if cluster[question["pair"]["left"]] == cluster[question["pair"]["right"]] else "no"

    with open_review(folder, "pairs", TABLE, *SITE_COLUMNS) as address:
        answer_questions(address, ANSWERS, answer)
        draw(browser, address, REVIEW_HEIGHT, images / "review")


def draw_labels(browser: Chrome, folder: Path, source: Path, images: Path) -> None:
    """Draw the review of labels, which begins with PER_LABEL texts of each intent."""
    with source.open(encoding="utf-8", newline="") as file:
        rows = [
            (" ".join(text.split()), label) for label, text in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]
    truth, seen, first = dict(rows), dict.fromkeys((label for _, label in rows), 0), [("text", "label")]
    for text, label in truth.items():
        if seen[label] < PER_LABEL:
            seen[label] += 1
            first.append((text, label))
    with (folder / "intents.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(first)
    others = [text for text in truth if (text, truth[text]) not in first]
    (folder / "messages.txt").write_text("\n".join(others) + "\n", encoding="utf-8")
    run(folder, "classify", "fit", "intents.csv", "--one-label", "-o", "intents.head")
    with open_review(folder, "labels", "messages.txt", "--head", "intents.head", "--labels", "intents.csv") as address:
        answer_questions(address, LABELS, lambda question: truth[question["text"]])
        draw(browser, address, LABELS_HEIGHT, images / "labels")


def run(folder: Path, *arguments: str) -> None:
    """Run gramvec in the folder. Raises SystemExit with its message if it fails."""
    done = subprocess.run([*GRAMVEC, *arguments], cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)


@contextmanager
def open_review(folder: Path, *arguments: str) -> Iterator[str]:
    """Run a review, and give its address."""
    command = [*GRAMVEC, "review", *arguments]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield read_address(running)
        finally:
            running.terminate()


def is_ready(address: str) -> bool:
    """Return whether a service answers."""
    try:
        with urllib.request.urlopen(address + "ready"):
            return True
    except OSError:
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something is so. Raises SystemExit after MAX_SECONDS."""
    end = time.monotonic() + MAX_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"a page is not ready after {MAX_SECONDS} s")
        time.sleep(0.05)


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


def draw(
    browser: Chrome, address: str, height: int, picture: Path, ready: str = READY, do: Callable[[], None] = lambda: None
) -> None:
    """Write PICTURE-light.png and PICTURE-dark.png of the top of a page. Raises SystemExit if one is too large.

    Args:
        browser: the browser.
        address: of the page.
        height: of the picture.
        picture: the path without -light.png.
        ready: a script that returns whether the page has drawn all.
        do: called when the page is open, before that.
    """
    size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(address)
        do()
        wait_for(lambda: bool(browser.execute_script(ready)))
        time.sleep(0.3)  # what moves has come to rest
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


def answer_questions(address: str, count: int, answer: Callable[[dict[str, Any]], str]) -> None:
    """Answer questions of a review, and wait for what is learned from them."""
    state = ask(address + "state")
    for _ in range(count):
        question = state["question"]
        ask(address + "answers", {"id": question["id"], "answer": answer(question)})
        wait_for(lambda: not ask(address + "state")["learning"])
        state = ask(address + "state")


def ask(address: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the answer of the page's server."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as response:
        found: dict[str, Any] = json.load(response)
    return found


if __name__ == "__main__":
    main()
