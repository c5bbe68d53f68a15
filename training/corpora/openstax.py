"""Paragraphs of textbooks of OpenStax, in CNXML."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from corpora.readers import Files, Records
from corpora.writers import join_spaces

_PARTS = {"para", "item", "caption"}
_FEWEST_WORDS = 6


def read_openstax(files: Files, columns: Sequence[str]) -> Records:
    """Yield each paragraph, item and caption of at least six words."""
    for file in files:
        if b"<!ENTITY" in file.data:
            raise ValueError(f"{file.path}: declares entities, which a module of OpenStax does not")
        for element in ET.fromstring(file.data).iter():  # noqa: S314 - no entities
            if isinstance(element.tag, str) and element.tag.rpartition("}")[2] in _PARTS:
                text = join_spaces("".join(element.itertext()))
                if len(text.split()) >= _FEWEST_WORDS:
                    yield (text,)
