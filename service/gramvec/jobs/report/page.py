"""Write a report as one page of HTML that needs no other file and no network.

The page's policy lets its own scripts run and nothing else load. Texts reach the page as JSON and become text nodes, so
that markup in a text is shown and does nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson

from gramvec.jobs.report.records import JobReport
from gramvec.jobs.tables.staging import whole
from gramvec.text.inputs import has_surrogate

ASSETS = "gramvec.jobs.report"
# What draws the pictures, in the order in which it is loaded.
PLOT_SCRIPTS = ("assets/d3.min.js", "assets/plot.umd.min.js", "show.js")


def render_page(report: JobReport) -> str:
    """Return the report as a page of HTML."""
    return render(report.title, to_json(report), page_script="report.js")


def to_json(value: Any) -> bytes:
    """Return records, lists and texts as JSON; of a file's name, bytes that are not UTF-8 are escaped."""
    try:
        return orjson.dumps(value, default=list)
    except orjson.JSONEncodeError:
        return orjson.dumps(_without_surrogates(value))


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _readable(value)
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {_readable(name): _without_surrogates(item) for name, item in value.items()}
    return [*map(_without_surrogates, value)] if isinstance(value, Iterable) else value


def _readable(text: str) -> str:
    """Return a text with each lone surrogate as the byte that Python made it of, or as its code point."""
    if not has_surrogate(text):
        return text
    return "".join(
        f"\\x{ord(char) - 0xDC00:02x}" if 0xDC80 <= ord(char) <= 0xDCFF
        else char.encode("utf-8", "backslashreplace").decode()
        for char in text
    )  # fmt: skip


def write_page(report: JobReport, path: Path) -> None:
    """Write the report to a file of HTML, in one step: a stopped run leaves the file as it was.

    Raises:
        InputError: a link, a folder or a special file stands in its place, or another run is writing it.
        OSError: the file cannot be written.
    """
    content = render_page(report).encode()
    with whole(path) as file:
        file.write(content)


def render(title: str, data: bytes, *, page_script: str, connect: str = "'none'") -> str:
    """Return a page with this title, data of JSON, the plots' libraries and one script of this package.

    Args:
        title: the page's title, plain text.
        data: JSON that the script reads from the element `data`.
        page_script: the name of the script beside this module.
        connect: what the page may ask over the network, as in a content security policy.
    """
    scripts = [read_asset(name) for name in (*PLOT_SCRIPTS, page_script)]
    policy = "; ".join([
        "default-src 'none'", f"script-src {' '.join(_digest(script) for script in scripts)}",
        "style-src 'unsafe-inline'", "img-src data:", f"connect-src {connect}", "base-uri 'none'", "form-action 'none'",
    ])  # fmt: skip
    return "".join([
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        '<meta name="color-scheme" content="light dark">\n<meta name="robots" content="noindex">\n',
        f'<title>{_escape(_readable(title))}</title>\n<link rel="icon" href="data:,">\n',
        f"<style>\n{read_asset('page.css')}</style>\n</head>\n<body>\n",
        '<main id="page"><noscript><p>This page draws its figures with JavaScript.</p></noscript></main>\n',
        f'<script type="application/json" id="data">{_embed(data)}</script>\n',
        *(f"<script>{script}</script>\n" for script in scripts),
        "</body>\n</html>\n",
    ])  # fmt: skip


@lru_cache
def read_asset(name: str) -> str:
    """Return a text file of this package."""
    return files(ASSETS).joinpath(*name.split("/")).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _embed(data: bytes) -> str:
    """Return JSON in which no end of a script's element and no line break of JavaScript stands."""
    text = data.decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
