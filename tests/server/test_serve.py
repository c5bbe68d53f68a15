"""The command and the process: settings in, one sentence for a bad one, an orderly end."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient

from conftest import ROOT
from gramvec import Embedder
from gramvec.cli.serve import serve
from gramvec.errors import InputError
from gramvec.server.app import create_app
from gramvec.server.edge import run as http_server
from gramvec.server.settings import Settings, settings_from
from support.errors import refused
from support.http import COMMAND, PATIENCE, served_process, serves, serves_at, until

pytestmark = pytest.mark.slow


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings with which the command would have served."""
    collected: list[Settings] = []
    monkeypatch.setattr(http_server, "serve", collected.append)
    return collected


def test_help_names_every_setting_with_its_variable() -> None:
    text = CliRunner().invoke(serve, ["--help"], terminal_width=200).output
    for name in Settings.model_fields:
        assert f"--{name.replace('_', '-')} " in text
        assert f"GRAMVEC_{name.upper()}" in text
    assert "--config" in text


def settings_table() -> str:
    """The table of docs/operating.md, made from the settings."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = " ".join(field.default) if isinstance(field.default, tuple) else field.default
        shown = "" if default in ("", None) else f"`{json.dumps(default)}`"
        rows.append(f"| `{name}` | {shown} | {field.description} |\n")
    return "| setting | default | |\n| --- | --- | --- |\n" + "".join(rows)


def test_the_page_lists_every_setting() -> None:
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    # Where it differs, what is expected is what the page should have.
    assert page.partition("<!-- settings -->\n")[2].partition("<!-- /settings -->")[0] == settings_table()


def test_nothing_set_gives_the_defaults(given: list[Settings]) -> None:
    result = CliRunner().invoke(serve, [])
    assert result.exit_code == 0, result.output
    assert given == [Settings()]


def test_a_flag_wins_over_the_environment_and_that_over_the_file(given: list[Settings], tmp_path: Path) -> None:
    config = tmp_path / "gramvec.toml"
    config.write_text('port = 1001\nmax_texts = 11\nqueue_texts = 101\nlog_format = "json"\napi_key = ["a", "b"]\n')
    environment = {"GRAMVEC_PORT": "1002", "GRAMVEC_MAX_TEXTS": "12", "GRAMVEC_CONFIG": str(config)}
    result = CliRunner().invoke(serve, ["--port", "1003"], env=environment)
    assert result.exit_code == 0, result.output
    (settings,) = given
    assert (settings.port, settings.max_texts, settings.queue_texts) == (1003, 12, 101)
    assert settings.log_format == "json"
    assert [key.get_secret_value() for key in settings.api_key] == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "variable", "content", "models"),
    [
        (["--model", "sif", "--model", "gramvec-en"], "", "", ("sif", "gramvec-en")),
        ([], "sif gramvec-en", "", ("sif", "gramvec-en")),
        ([], "", 'model = ["sif", "gramvec-en"]', ("sif", "gramvec-en")),
        ([], "", 'model = "a model"', ("a model",)),
    ],
)
def test_models_by_flags_variable_or_file(
    given: list[Settings], tmp_path: Path, arguments: list[str], variable: str, content: str, models: tuple[str, ...]
) -> None:
    config = tmp_path / "gramvec.toml"
    config.write_text(content)
    environment = {"GRAMVEC_MODEL": variable} if variable else {}
    result = CliRunner().invoke(serve, ["--config", str(config), *arguments], env=environment)
    assert result.exit_code == 0, result.output
    assert given[0].model == models


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "70000"], ["port", "70000", "65535", "GRAMVEC_PORT"]),
        (["--port", "http"], ["--port", "http"]),
        (["--max-texts", "0"], ["max_texts", "0"]),
        (["--device", "tpu"], ["--device", "tpu", "cuda"]),
        (["--host", ""], ["host"]),
        (["--queue-texts", "100"], ["queue_texts (100)", "max_texts (2048)"]),
        (["--queue-characters", "100"], ["queue_characters"]),
        (["--graceful-shutdown-seconds", "-1"], ["graceful_shutdown_seconds"]),
        (["--graceful-shutdown-seconds", "nan"], ["graceful_shutdown_seconds"]),
        (["--api-key", "with space"], ["api_key", "spaces"]),
        (["--model", ""], ["model", "empty"]),
        (["--model", "sif", "--model", "sif"], ["model", "sif sif", "twice", "GRAMVEC_MODEL"]),
        (["--request-deadline-seconds", "0"], ["request_deadline_seconds"]),
        (["--config", "no-such-file.toml"], ["no-such-file.toml"]),
        (["--nonsense"], ["--nonsense"]),
    ],
)
def test_a_bad_value_is_one_sentence_that_names_it(
    given: list[Settings], arguments: list[str], words: list[str]
) -> None:
    result = CliRunner().invoke(serve, arguments)
    assert result.exit_code == 2
    error = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert len(error) == 1
    for word in words:
        assert word in error[0]
    assert "with space" not in result.output
    assert not given


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("prot = 8000", ["'prot'", "port"]),
        ("port = ", ["TOML"]),
        ('port = "many"', ["--port", "many"]),
        ("port = 80.5", ["--port", "80.5"]),
        ("port = true", ["--port", "True"]),
        ("port = [1]", ["--port"]),
        ("api_key = 5", ["api-key"]),
        ("model = []", ["model"]),
        ('model = ["a", "a"]', ["model", "twice"]),
        ("\udcff", ["TOML"]),
    ],
)
def test_a_bad_config_file_is_one_sentence(
    given: list[Settings], tmp_path: Path, content: str, words: list[str]
) -> None:
    config = tmp_path / "gramvec.toml"
    config.write_bytes(content.encode("utf-8", "surrogateescape"))
    result = CliRunner().invoke(serve, ["--config", str(config)])
    assert result.exit_code == 2
    for word in words:
        assert word in result.output
    assert not given


def test_settings_refuse_what_they_do_not_know() -> None:
    with refused(InputError, "'ports'"):
        settings_from({"ports": 1})


@pytest.mark.parametrize("options", [[], ["--model", "sif"], ["--workers", "2"]])
def test_a_model_that_is_not_there_stops_the_start(options: list[str]) -> None:
    command = [*COMMAND, "--port", "0", *options, "--model", "no-such-model"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 1
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert [line for line in result.stderr.splitlines() if "no-such-model" in line] == result.stderr.splitlines()[-1:]
    assert result.stderr.splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize("host", ["127.0.0.1", "no.such.host.invalid"])
def test_an_address_that_cannot_be_had_stops_the_start(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = subprocess.run(
            [*COMMAND, "--host", host, "--port", port], capture_output=True, text=True, timeout=PATIENCE
        )
    assert result.returncode == 1
    assert result.stderr.startswith(f"Error: cannot listen on {host} port {port}: ")
    assert len(result.stderr.splitlines()) == 1


def ready(port: int) -> bool:
    return httpx.get(f"http://127.0.0.1:{port}/ready").status_code == 200


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server_with_exit_code_0(sent: signal.Signals) -> None:
    # An idle connection is kept open, as a client's pool does.
    with served_process("--graceful-shutdown-seconds", "20") as (process, port), httpx.Client() as client:
        until(lambda: ready(port))
        assert client.get(f"http://127.0.0.1:{port}/health").status_code == 200
        process.send_signal(sent)
        # Long before the grace time is over, or this would raise.
        assert process.wait(timeout=15) == 0


def test_why_it_does_not_start_is_json_where_the_lines_are() -> None:
    done = subprocess.run(
        [*COMMAND, "--port", "0", "--log-format", "json", "--model", "none"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1
    (line,) = [json.loads(line) for line in done.stderr.splitlines()]  # it has not listened
    assert line["level"] == "error"
    assert line["message"].startswith("no model")


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_daemon_without_standard_streams_ends_with_0(tmp_path: Path, closed: str, workers: str) -> None:
    """Sockets must not take their numbers."""
    path = tmp_path / "s"
    command = f"{sys.executable} -m gramvec serve --unix-socket {path} --model sif --workers {workers} {closed}"
    with subprocess.Popen(["/bin/sh", "-c", f"exec {command}"], stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: serves_at(path))
            process.terminate()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    with served_process("--model", "sif", "--access-log", "on") as (process, port):
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
            until(lambda: serves(port))
            for _ in range(2_000):  # 200 kB of lines, and a pipe holds 64
                assert client.get("/health").status_code == 200
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert process.stderr.read().count("request served") < 2_000


def test_keys_are_read_again_at_a_reload(tmp_path: Path, small: Embedder) -> None:
    keys = tmp_path / "keys"
    keys.write_text("old\n")
    settings = settings_from({"api_key": ["given"], "api_key_file": keys})

    def statuses(client: TestClient) -> list[int]:
        headers = [{"authorization": f"Bearer {key}"} for key in ("given", "old", "new")]
        return [client.post("/embed", json={"inputs": "a"}, headers=each).status_code for each in headers]

    with TestClient(create_app(settings, small)) as client:
        assert statuses(client) == [200, 200, 401]
        keys.write_text("new\n")
        given = {"authorization": "Bearer given"}
        assert client.post("/admin/reload", headers=given).status_code == 200
        assert statuses(client) == [200, 401, 200]
        for unusable in ("", "with space", "\u00e9"):
            keys.write_text(unusable)
            assert client.post("/admin/reload", headers=given).status_code == 422
            assert statuses(client) == [200, 401, 200]
