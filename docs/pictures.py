"""Hook of the build of the site: a picture that is not there is a warning, which `--strict` makes an error.

MkDocs looks at pictures of Markdown alone, and linkchecker not at those for the dark, which stand in `srcset`.
"""

import logging
import posixpath
import re
from typing import Any

_NAMED = re.compile(r'<(?:img|source)\b[^>]*?\s(?:src|srcset)="([^"]+)"')
_log = logging.getLogger("mkdocs.hooks.pictures")


def on_page_content(html: str, page: Any, files: Any, **_: Any) -> str:
    """Warn of each picture of a page that the site does not have."""
    there = {file.dest_uri for file in files}
    folder = posixpath.dirname(page.file.dest_uri)
    for sources in _NAMED.findall(html):
        for source in sources.split(","):
            name = source.split()[0]
            if ":" not in name and posixpath.normpath(posixpath.join(folder, name)) not in there:
                _log.warning("%s shows the picture %s, which is not there", page.file.src_uri, name)
    return html
