"""The site's build warns of a picture that is not there, also of one for the dark."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from types import SimpleNamespace

import pytest

from conftest import ROOT


def test_a_missing_picture_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    spec = spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None and spec.loader is not None
    hook = module_from_spec(spec)
    spec.loader.exec_module(hook)
    page = SimpleNamespace(file=SimpleNamespace(src_uri="docs/a.md", dest_uri="docs/a.html"))
    files = [SimpleNamespace(dest_uri=name) for name in ("docs/images/light.png", "top.svg")]
    html = (
        '<source media="(prefers-color-scheme: dark)" srcset="images/dark.png, images/light.png 2x">'
        '<img src="images/light.png" alt="a"><img alt="b" src="../top.svg"><img src="https://example.org/x.png">'
    )
    assert hook.on_page_content(html, page=page, files=files, config={}) == html
    assert caplog.messages == ["docs/a.md shows the picture images/dark.png, which is not there"]
