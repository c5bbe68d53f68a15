"""GET /: the playground, one page that asks this server and nobody else."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from fastapi import APIRouter, Request
from starlette.responses import Response

PAGE = (files("gramvec.server.routes") / "playground.html").read_bytes()
ETAG = f'"{hashlib.sha256(PAGE).hexdigest()[:16]}"'

router = APIRouter()


def _hash_of(tag: str) -> str:
    """What the page's one element of this name is known by to a browser (CSP level 3, hash-source)."""
    (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>".encode(), PAGE, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}'"


# Nothing but the page's own script and style runs, it talks to its own server, and no text becomes markup.
POLICY = "; ".join(
    [
        "default-src 'none'",
        f"script-src {_hash_of('script')}",
        f"style-src {_hash_of('style')}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-cache",
    "etag": ETAG,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@router.head("/", include_in_schema=False)
@router.get("/", responses={200: {"description": "The page.", "content": {"text/html": {}}}}, response_class=Response)
async def playground(request: Request) -> Response:
    """The playground: two texts, their score, what made it; several texts; the model's card. For people, in a browser.

    It needs no key to open; what it asks for does.
    """
    if request.headers.get("if-none-match") == ETAG:
        return Response(status_code=304, headers=HEADERS)
    return Response(PAGE, media_type="text/html; charset=utf-8", headers=HEADERS)
