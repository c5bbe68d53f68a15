"""Pages for people: the playground at GET /, and Swagger UI at GET /docs.

Both load nothing from elsewhere, and their content security policy names their own scripts and styles by hash. The
playground's pictures are those of reports: their script is loaded when the first is shown.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from importlib.resources import files

from gramvec.jobs.report.page import PLOT_SCRIPTS, read_asset
from gramvec.server.inference import ModelWork
from gramvec.server.model_route import open_router
from gramvec.server.openapi import ok
from gramvec.server.request import Request
from gramvec.server.responses import Headers, Response, to_json

HTML = "text/html; charset=utf-8"
PAGE = (files("gramvec.server.routes") / "playground.html").read_bytes()
JAVASCRIPT = "text/javascript; charset=utf-8"


def _etag_of(content: bytes) -> bytes:
    return f'"{hashlib.sha256(content).hexdigest()[:16]}"'.encode()


ETAG = _etag_of(PAGE)

# The files of Swagger UI, which must open before a key can be typed into it.
DOCS_ASSETS = {
    "swagger-ui-bundle.js": JAVASCRIPT,
    "swagger-ui.css": "text/css; charset=utf-8",
    "favicon-32x32.png": "image/png",
}


router = open_router("texts")


@router.get("/", responses=ok("The page.", content={"text/html": {}}))
@router.head("/", include_in_schema=False)
async def playground(request: Request) -> Response:
    """Show the playground: a page for people that compares texts and explains their score.

    The page needs no key to open; its requests do.
    """
    return _not_modified(request, ETAG, PLAYGROUND_HEADERS) or Response([PAGE], HTML, PLAYGROUND_HEADERS)


@router.get("/plots.js", include_in_schema=False)
async def plots(request: Request) -> Response:
    """Return the script that draws the playground's pictures."""
    content, etag = _plots()
    headers = [(b"cache-control", b"no-cache"), (b"etag", etag), (b"x-content-type-options", b"nosniff")]
    return _not_modified(request, etag, headers) or Response([content], JAVASCRIPT, headers)


def _not_modified(request: Request, etag: bytes, headers: Headers) -> Response | None:
    return Response([b""], "", headers, 304) if request.sent.get(b"if-none-match") == etag else None


@lru_cache(1)
def _plots() -> tuple[bytes, bytes]:
    content = "\n".join(map(read_asset, PLOT_SCRIPTS)).encode()
    return content, _etag_of(content)


@router.get("/docs", include_in_schema=False)
async def docs() -> Response:
    """Show Swagger UI over /openapi.json. Its links are relative, so that a proxy may add a prefix."""
    return Response([_docs_page()], HTML, _page_headers(DOCS_POLICY))


@router.get("/openapi.json", include_in_schema=False)
@router.head("/openapi.json", include_in_schema=False)
async def describe_service(request: Request, work: ModelWork) -> Response:
    """Return the OpenAPI document of the application."""
    return Response([await work.service.document(lambda: to_json(request.app.openapi()))])


async def docs_asset(request: Request) -> Response:
    """Return one file of Swagger UI."""
    name = request.scope["path"].rpartition("/")[2]
    content = (files("fastapi_swagger.resources") / name).read_bytes()
    return Response([content], DOCS_ASSETS[name], [(b"cache-control", b"max-age=86400")])


for asset in DOCS_ASSETS:
    router.add_api_route(f"/docs/{asset}", docs_asset, include_in_schema=False)

# The page is dark where the browser prefers it. Each table of the six headers that every response has is folded.
SCRIPT = """
const dark = matchMedia("(prefers-color-scheme: dark)");
const choose = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", choose);
choose();
const fold = (Headers, { React }) => (props) => {
  const { createElement } = React, { headers } = props;
  if (!headers || !headers.size) return null;
  const summary = createElement("summary", null, `${headers.size} headers`);
  return createElement("details", null, summary, createElement(Headers, props));
};
addEventListener("DOMContentLoaded", () => SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: "#swagger-ui",
  layout: "BaseLayout",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  persistAuthorization: true,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIBundle.SwaggerUIStandalonePreset],
  plugins: [() => ({ wrapComponents: { headers: fold } })],
}));
"""
STYLE = """
body { margin: 0; }
.dark-mode body { background: #1c2022; }
.swagger-ui details > summary { cursor: pointer; font-size: 12px; margin-top: 10px; }
.dark-mode .swagger-ui details > summary { color: #e4e6e6; }
"""


@lru_cache(1)
def _docs_page() -> bytes:
    javascript, style, icon = (f"docs/{name}" for name in DOCS_ASSETS)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>gramvec</title>
<link rel="icon" href="{icon}">
<link rel="stylesheet" href="{style}">
<style>{STYLE}</style>
<script>{SCRIPT}</script>
<script src="{javascript}" defer></script>
</head>
<body>
<div id="swagger-ui"></div>
</body>
</html>
""".encode()


def _hash_of(content: bytes) -> str:
    """Return the source expression of an inline script or style (CSP level 3, hash-source)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}'"


def _only(tag: str) -> bytes:
    (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>".encode(), PAGE, re.DOTALL)
    found: bytes = content
    return found


# What Observable Plot writes into each of its pictures.
PLOT_STYLE = """:where(.plot) {
  --plot-background: white;
  display: block;
  height: auto;
  height: intrinsic;
  max-width: 100%;
}
:where(.plot text),
:where(.plot tspan) {
  white-space: pre;
}"""
# Only the server's own scripts and styles run, the page talks only to its server, and no text becomes markup.
PLAYGROUND_POLICY = {
    "default-src": "'none'",
    "script-src": f"'self' {_hash_of(_only('script'))}",
    "style-src": f"{_hash_of(_only('style'))} {_hash_of(PLOT_STYLE.encode())}",
    "connect-src": "'self'",
    "img-src": "data:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "plots",
}
# The same but for what Swagger UI needs: its own files, and the one script that starts it.
DOCS_POLICY = {
    **{name: value for name, value in PLAYGROUND_POLICY.items() if "trusted-types" not in name},
    "script-src": f"'self' {_hash_of(SCRIPT.encode())}",
    "style-src": f"'self' {_hash_of(STYLE.encode())}",
    "img-src": "'self' data:",
}


def _page_headers(policy: dict[str, str]) -> Headers:
    return [
        (b"content-security-policy", "; ".join(f"{name} {value}" for name, value in policy.items()).encode()),
        (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
    ]


PLAYGROUND_HEADERS = [(b"cache-control", b"no-cache"), (b"etag", ETAG), *_page_headers(PLAYGROUND_POLICY)]
