"""Spreadsheets with the few parts that they need, so that no other library writes them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

Rows = Sequence[Sequence[object]]

OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
OPEN_XML = "http://schemas.openxmlformats.org"
TYPES = (
    f'<Types xmlns="{OPEN_XML}/package/2006/content-types"><Default Extension="rels" ContentType="application/'
    'vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/></Types>'
)


class ErrorCell(str):
    """A formula's error, such as #REF!."""


def write_xlsx(
    path: Path, sheets: Mapping[str, Rows], compression: int = zipfile.ZIP_DEFLATED, hidden: Mapping[str, str] = {}
) -> Path:
    """Write sheets; texts are inline, numbers are numbers, None leaves a cell out; `hidden` has sheets' states."""
    relations = f"{OPEN_XML}/officeDocument/2006/relationships"
    names = "".join(
        f'<sheet name="{escape(name)}" sheetId="{at}" state="{hidden.get(name, "visible")}" r:id="r{at}"/>'
        for at, name in enumerate(sheets, start=1)
    )
    links = "".join(
        f'<Relationship Id="r{at}" Type="{relations}/worksheet" Target="worksheets/sheet{at}.xml"/>'
        for at in range(1, len(sheets) + 1)
    )
    with zipfile.ZipFile(path, "w", compression) as zipped:
        zipped.writestr("[Content_Types].xml", TYPES)
        package = f'<Relationships xmlns="{OPEN_XML}/package/2006/relationships">'
        root = f'<Relationship Id="r1" Type="{relations}/officeDocument" Target="xl/workbook.xml"/>'
        zipped.writestr("_rels/.rels", f"{package}{root}</Relationships>")
        main = f'xmlns="{OPEN_XML}/spreadsheetml/2006/main" xmlns:r="{relations}"'
        zipped.writestr("xl/workbook.xml", f"<workbook {main}><sheets>{names}</sheets></workbook>")
        zipped.writestr("xl/_rels/workbook.xml.rels", f"{package}{links}</Relationships>")
        for at, rows in enumerate(sheets.values(), start=1):
            zipped.writestr(f"xl/worksheets/sheet{at}.xml", f"<worksheet {main}>{sheet_data(rows)}</worksheet>")
    return path


def sheet_data(rows: Rows) -> str:
    """The rows of a sheet as XML."""
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = [
            f'<c r="{chr(65 + at)}{number}" t="e"><v>{value}</v></c>'
            if isinstance(value, ErrorCell)
            else f'<c r="{chr(65 + at)}{number}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
            if isinstance(value, str)
            else f'<c r="{chr(65 + at)}{number}"><v>{value}</v></c>'
            for at, value in enumerate(row)
            if value is not None
        ]
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    return f"<sheetData>{''.join(lines)}</sheetData>"


def write_ods(path: Path, sheets: Mapping[str, Rows]) -> Path:
    """Write sheets; texts are texts, numbers are numbers, None is an empty cell."""
    tables = []
    for name, rows in sheets.items():
        lines = "".join(f"<table:table-row>{''.join(map(_cell, row))}</table:table-row>" for row in rows)
        tables.append(f'<table:table table:name="{escape(name)}">{lines}</table:table>')
    spaces = f'xmlns:office="{OFFICE}:office:1.0" xmlns:table="{OFFICE}:table:1.0" xmlns:text="{OFFICE}:text:1.0"'
    spaces += ' xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet", zipfile.ZIP_STORED)
        body = f"<office:spreadsheet>{''.join(tables)}</office:spreadsheet>"
        zipped.writestr(
            "content.xml",
            f"<office:document-content {spaces}><office:body>{body}</office:body></office:document-content>",
        )
        zipped.writestr("META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{OFFICE}:manifest:1.0"/>')
    return path


def _cell(value: object) -> str:
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, ErrorCell):
        kind = 'office:value-type="string" office:string-value="" calcext:value-type="error"'
        return f'<table:table-cell table:formula="of:=[.A1]" {kind}><text:p>{value}</text:p></table:table-cell>'
    if isinstance(value, str):
        return f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p></table:table-cell>'
    return f'<table:table-cell office:value-type="float" office:value="{value}"/>'
