"""The service against its own /openapi.json, by schemathesis, with a key and without one."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest

from conftest import MODELS
from reliability.schemathesis_run import check_schema
from support.http import served_process, until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("key", ["", "the-key"])
def test_no_request_has_an_answer_that_the_page_does_not_describe(tmp_path: Path, key: str) -> None:
    options = ["--model", str(MODELS / "paragram-phrase"), "--device", "cpu"]
    with served_process(*options, *(["--api-key", key] if key else [])) as (process, port):
        until(lambda: httpx.get(f"http://127.0.0.1:{port}/ready").status_code == 200)
        # CI draws the same requests every time, as hypothesis does there.
        found = check_schema(port, tmp_path, examples=12, key=key, seed=1 if os.environ.get("CI") else None)
        assert process.poll() is None
    print(found.requests, found.closing_line)  # noqa: T201
    assert found.exit_code == 0, found.output
    assert "generated" in found.requests
