"""GET /docs: Swagger UI, from files that came with the installation; no CDN."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter, Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import Response

ASSETS = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
    "favicon-32x32.png": "image/png",
}
PUBLIC_PATHS = frozenset({"/docs", "/openapi.json", *(f"/docs/{name}" for name in ASSETS)})

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def docs(request: Request) -> Response:
    """The page. Its links are relative, so that it also works where a proxy adds a prefix."""
    javascript, style, icon = (f"docs/{name}" for name in ASSETS)
    return get_swagger_ui_html(
        openapi_url="openapi.json",
        title=request.app.title,
        swagger_js_url=javascript,
        swagger_css_url=style,
        swagger_favicon_url=icon,
        swagger_ui_parameters={"tryItOutEnabled": True, "persistAuthorization": True},
    )


async def _asset(request: Request) -> Response:
    name = request.url.path.rpartition("/")[2]
    content = (files("fastapi_swagger.resources") / name).read_bytes()
    return Response(content, media_type=ASSETS[name], headers={"cache-control": "max-age=86400"})


for _name in ASSETS:
    router.add_api_route(f"/docs/{_name}", _asset)
