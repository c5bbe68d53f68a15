"""GET /docs: Swagger UI, from files that came with the installation; no CDN."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from importlib.resources import files

from fastapi import APIRouter, Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import Response

from gramvec.http.routes.passing import DOCS_ASSETS

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def docs(request: Request) -> Response:
    """The page. Its links are relative, so that it also works where a proxy adds a prefix."""
    page = _page(request.app.title)
    return Response(page, media_type="text/html; charset=utf-8", headers=_headers(page))


@lru_cache(1)
def _page(title: str) -> bytes:
    javascript, style, icon = (f"docs/{name}" for name in DOCS_ASSETS)
    page = get_swagger_ui_html(
        openapi_url="openapi.json",
        title=title,
        swagger_js_url=javascript,
        swagger_css_url=style,
        swagger_favicon_url=icon,
        swagger_ui_parameters={"tryItOutEnabled": True, "persistAuthorization": True},
    )
    return bytes(page.body)


def _headers(page: bytes) -> dict[str, str]:
    """As the playground's, but for what Swagger UI needs: its own files, and the one script that starts it."""
    (script,) = re.findall(rb"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
    policy = {
        "default-src": "'none'",
        "script-src": f"'self' 'sha256-{digest}'",
        "style-src": "'self'",
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
