"""GET /docs: Swagger UI, from files that came with the installation; no CDN."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from html import escape
from importlib.resources import files

from fastapi import APIRouter, Request
from starlette.responses import Response

from gramvec.server.routes.passing import DOCS_ASSETS

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def docs(request: Request) -> Response:
    """The page. Its links are relative, so that it also works where a proxy adds a prefix."""
    page = _page(request.app.title)
    return Response(page, media_type="text/html; charset=utf-8", headers=_headers())


# Dark where the browser prefers it. Six headers are on every answer, and eleven tables of them are no help: each is
# folded under its number.
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
def _page(title: str) -> bytes:
    javascript, style, icon = (f"docs/{name}" for name in DOCS_ASSETS)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
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


def _hash_of(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _headers() -> dict[str, str]:
    """As the playground's, but for what Swagger UI needs: its own files, and the one script that starts it."""
    policy = {
        "default-src": "'none'",
        "script-src": f"'self' {_hash_of(SCRIPT)}",
        "style-src": f"'self' {_hash_of(STYLE)}",
        "connect-src": "'self'",
        "img-src": "'self' data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }


async def _asset(request: Request) -> Response:
    name = request.url.path.rpartition("/")[2]
    content = (files("fastapi_swagger.resources") / name).read_bytes()
    return Response(content, media_type=DOCS_ASSETS[name], headers={"cache-control": "max-age=86400"})


for _name in DOCS_ASSETS:
    router.add_api_route(f"/docs/{_name}", _asset)
