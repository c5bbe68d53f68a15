"""The blocks of each page are run in their order, and print what the page shows below them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from pages import difference, examples, printed

from conftest import MODELS, ROOT

DOCS = ROOT / "docs"
# Pages whose blocks other tests run, with services, training or a copy of the sources.
ELSEWHERE = {
    "api.md": "tests/client/test_clients.py, tests/server/test_in_fastapi.py",
    "benchmarks.md": "the figures are what `make figures` writes",
    "deploy.md": "tests/deploy",
    "operating.md": "tests/server/test_serve.py, tests/deploy/test_monitoring.py",
    "train-your-own.md": "tests/docs/test_train_your_own.py",
}
PAGES = sorted(
    path.name for path in DOCS.glob("*.md") if path.name not in ELSEWHERE and any(examples(path.read_text()))
)
# Pages that show what each block prints that prints something.
COMPLETE = {"quickstart.md"}
NEEDED = ("pyarrow", "scipy", "tantivy", "sparse_dot_topn")


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
    for example in examples((DOCS / page).read_text(encoding="utf-8")):
        if example.why is not None:
            compile(example.code, page, "exec") if example.language == "python" else None
            continue
        found = printed(example, tmp_path)
        if example.shown is not None:
            differs = difference(example.shown, found)
            assert differs is None, f"{page}, line {example.line}: {differs}"
        elif page in COMPLETE and example.language == "sh":
            assert not found, f"{page}, line {example.line} prints, and the page does not show it:\n{found}"


def test_a_page_is_taken_apart() -> None:
    page = (
        "a\n```sh\necho 1\n```\n\nprints\n\n```text\n1\n```\n<!-- not run: why -->\n```python\nx\n```\n```\nno\n```\n"
    )
    first, second = examples(page)
    assert (first.line, first.language, first.code, first.shown, first.why) == (2, "sh", "echo 1\n", "1\n", None)
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
    ],
)
def test_outputs_are_compared(shown: str, found: str, same: bool) -> None:
    assert (difference(shown, found) is None) == same
