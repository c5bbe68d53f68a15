"""The blocks of each page are run in their order, and print what the page shows below them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from conftest import MODELS, ROOT
from support.pages import Shell, difference, examples

DOCS = ROOT / "docs"
# Pages whose blocks other tests run, with services, training or a copy of the sources.
ELSEWHERE = {
    "benchmarks.md": "the figures are what `make figures` writes",
    "train-your-own.md": "tests/docs/test_train_your_own.py",
}
PAGES = sorted(
    str(path.relative_to(DOCS))
    for path in [*DOCS.glob("*.md"), *DOCS.glob("library/*.md")]
    if path.name not in ELSEWHERE and any(examples(path.read_text()))
)
# Pages that show what each block prints that prints something.
COMPLETE = {"api.md", "quickstart.md"}
NEEDED = ("pandas", "polars", "pyarrow", "scipy", "tantivy", "sparse_dot_topn")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_print_what_it_shows(page: str, tmp_path: Path) -> None:
    for module in NEEDED:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install '.[all]'")
    (tmp_path / "models").symlink_to(MODELS)
    (tmp_path / "README.md").write_bytes((ROOT / "README.md").read_bytes())
    activate = tmp_path / ".venv" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    activate.touch()
    with Shell(tmp_path) as shell:
        for example in examples((DOCS / page).read_text(encoding="utf-8")):
            if example.why is not None:
                compile(example.code, page, "exec") if example.language == "python" else None
                continue
            found = shell.printed(example)
            if example.shown is not None:
                differs = difference(example.shown, found, is_json=example.is_json)
                assert differs is None, f"{page}, line {example.line}: {differs}"
            elif page in COMPLETE and example.language == "sh":
                assert not found, f"{page}, line {example.line} prints, and the page does not show it:\n{found}"


def test_a_page_is_taken_apart() -> None:
    page = (
        "a\n```sh\necho 1\n```\n\nprints\n\n```text\n1\n```\n<!-- not run: why -->\n```python\nx\n```\n```\nno\n```\n"
    )
    first, second = examples(page)
    assert (first.line, first.language, first.code, first.shown, first.why) == (2, "sh", "echo 1\n", "1\n", None)
    assert not first.is_json
    assert (second.language, second.shown, second.why) == ("python", None, "not run: why")


@pytest.mark.parametrize(
    ("shown", "found", "same"),
    [
        ("a 0.1234\n", "a 0.1236\n", True),
        ("a 0.1234\n", "a 0.2234\n", False),
        ("a 3\n", "a 4\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a [0.5, ...]\n", "a [0.5001, 0.2]\n", True),
        ("put in 0.3 s\n", "put in 12.0 s\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n", "a", True),
        ("2026-11-26T07:10:58Z a\n", "2027-01-01T01:02:03.123Z a\n", True),
    ],
)
def test_outputs_are_compared(shown: str, found: str, same: bool) -> None:
    assert (difference(shown, found) is None) == same


@pytest.mark.parametrize(
    ("shown", "found", "same"),
    [
        ('{"a": [1.5, 2],\n "b": "x, y"}\n', '{"a":[1.5,2],"b":"x, y"}', True),
        ('{"a": [1.5, ...]}\n', '{"a":[1.5,2,3]}', True),
        ('{"total_ms": 0.5}\n', '{"total_ms":12}', True),
        ('{"a": 1}\n', '{"a":2}', False),
        ('{"a": "x y"}\n', '{"a":"xy"}', False),
    ],
)
def test_outputs_in_json_are_compared(shown: str, found: str, same: bool) -> None:
    assert (difference(shown, found, is_json=True) is None) == same


@pytest.mark.slow
def test_a_service_is_started_for_the_blocks_below(tmp_path: Path) -> None:
    page = (
        "```toml\n# my.toml\nmodel = ['sif']\n```\n```sh\ngramvec serve --config my.toml\n```\n"
        "```sh\ncurl -s 127.0.0.1:8000/ready\n```\n"
    )
    (tmp_path / "models").symlink_to(MODELS)
    with Shell(tmp_path) as shell:
        _, log, ready = (shell.printed(example) for example in examples(page))
    assert "listening on http://127.0.0.1:8000 (try /docs)" in log
    assert ready == '{"status":"ready"}'


def test_the_container_is_shown_with_what_the_command_prints(tmp_path: Path) -> None:
    (tmp_path / "models").symlink_to(MODELS)
    engine = "docker run --rm gramvec:cpu"
    blocks = examples((DOCS / "deploy.md").read_text(encoding="utf-8"))
    (example,) = (one for one in blocks if one.code.startswith(engine) and one.shown is not None)
    with Shell(tmp_path) as shell:
        found = shell.printed(example._replace(code=example.code.replace(engine, "gramvec")))
    assert difference(str(example.shown), found) is None
