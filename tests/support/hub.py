"""A stand-in for a model hub on this machine: what huggingface_hub asks of one to upload and to download, in memory."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WRITER = "hf_writer"
READER = "hf_reader"
# Beyond it a file is uploaded by itself (git-lfs), as large ones are.
LARGE_BYTES = 100_000


class StandIn:
    """Repositories by name, each a list of commits: id and files by path."""

    def __init__(self) -> None:
        self.repositories: dict[str, list[tuple[str, dict[str, bytes]]]] = {}
        self.private: set[str] = set()
        self.objects: dict[str, bytes] = {}
        self.downloaded: list[str] = []
        self.failing: int | None = None
        hub = self

        class Bound(_Handler):
            standin = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> StandIn:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def commit(self, repository: str, files: dict[str, bytes]) -> str:
        history = self.repositories.setdefault(repository, [])
        oid = hashlib.sha1(b"%d %b" % (len(history), repository.encode())).hexdigest()
        history.append((oid, files))
        return oid

    def at(self, repository: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        history = self.repositories.get(repository, [])
        if revision == "main":
            return history[-1] if history else ("0" * 40, {})
        return next((one for one in history if one[0] == revision), None)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    standin: StandIn

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        if self.standin.failing is not None:
            self._answer(self.standin.failing, {"error": "not now"})
            return
        for method, pattern, handler in ROUTES:
            if self.command == method and (found := re.fullmatch(pattern, path)):
                handler(self, body, *found.groups())
                return
        self._answer(404, {"error": f"no route {path}"})

    do_POST = do_PUT = do_GET  # noqa: N815

    def _token(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    def _may_write(self) -> bool:
        if self._token() == WRITER:
            return True
        self._answer(403 if self._token() == READER else 401, {"error": "who are you?"})
        return False

    def _answer(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _missing(self, code: str) -> None:
        self._answer(404, {"error": code}, {"x-error-code": code})

    def create(self, body: bytes) -> None:
        if self._may_write():
            asked = json.loads(body)
            name = "/".join(part for part in (asked.get("organization"), asked["name"]) if part)
            existed = name in self.standin.repositories
            self.standin.repositories.setdefault(name, [])
            if asked.get("private") or asked.get("visibility") == "private":
                self.standin.private.add(name)
            self._answer(409 if existed else 200, {"url": f"{self.standin.url}/{name}", "name": name})

    def validate(self, body: bytes) -> None:
        self._answer(200, {"errors": [], "warnings": []})

    def preupload(self, body: bytes, name: str, revision: str) -> None:
        if self._may_write():
            files = [
                {
                    "path": one["path"],
                    "uploadMode": "lfs" if one["size"] > LARGE_BYTES else "regular",
                    "shouldIgnore": False,
                }
                for one in json.loads(body)["files"]
            ]
            self._answer(200, {"files": files})

    def batch(self, body: bytes, name: str) -> None:
        if self._may_write():
            objects = [
                {**one, "actions": {"upload": {"href": f"{self.standin.url}/objects/{one['oid']}"}}}
                for one in json.loads(body)["objects"]
            ]
            self._answer(200, {"transfer": "basic", "objects": objects}, {"content-type": "application/json"})

    def put(self, body: bytes, oid: str) -> None:
        assert hashlib.sha256(body).hexdigest() == oid
        self.standin.objects[oid] = body
        self._answer(200, {})

    def commit(self, body: bytes, name: str, revision: str) -> None:
        if self._may_write():
            before = self.standin.at(name, revision)
            assert before is not None
            files = dict(before[1])
            for line in body.splitlines():
                entry = json.loads(line)
                value = entry["value"]
                if entry["key"] == "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                elif entry["key"] == "lfsFile":
                    files[value["path"]] = self.standin.objects[value["oid"]]
            oid = self.standin.commit(name, files)
            self._answer(
                200, {"success": True, "commitOid": oid, "commitUrl": f"{self.standin.url}/{name}/commit/{oid}"}
            )

    def info(self, body: bytes, name: str, revision: str = "main") -> None:
        if name not in self.standin.repositories or (name in self.standin.private and not self._token()):
            self._answer(401, {"error": "Invalid username or password."}, {"x-error-code": "RepoNotFound"})
        elif (found := self.standin.at(name, revision)) is None:
            self._missing("RevisionNotFound")
        else:
            siblings = [{"rfilename": path, "size": len(data)} for path, data in found[1].items()]
            self._answer(200, {"id": name, "modelId": name, "sha": found[0], "siblings": siblings, "tags": []})

    def resolve(self, body: bytes, name: str, revision: str, path: str) -> None:
        found = self.standin.at(name, revision)
        if found is None:
            self._missing("RevisionNotFound")
        elif path not in found[1]:
            self._missing("EntryNotFound")
        else:
            self.standin.downloaded.append(path)
            self._answer(200, found[1][path])


ROUTES = [
    ("POST", r"/api/repos/create", _Handler.create),
    ("POST", r"/api/validate-yaml", _Handler.validate),
    ("POST", r"/api/models/([^/]+/[^/]+)/preupload/(.+)", _Handler.preupload),
    ("POST", r"/api/models/([^/]+/[^/]+)/commit/(.+)", _Handler.commit),
    ("POST", r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch", _Handler.batch),
    ("PUT", r"/objects/(\w+)", _Handler.put),
    ("GET", r"/api/models/([^/]+/[^/]+)/revision/(.+)", _Handler.info),
    ("GET", r"/api/models/([^/]+/[^/]+)", _Handler.info),
    ("GET", r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", _Handler.resolve),
]
