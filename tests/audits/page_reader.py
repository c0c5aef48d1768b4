"""A page as its reader finds it: elements that nest, the data block, and the rows of its tables."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "col", "input", "img"}
IMPLIED = {"td", "th", "tr", "tbody", "thead", "tfoot"}  # their end tags may be left out


class Reader(HTMLParser):
    """Checks that elements nest, and takes from a page its elements, its data block and the rows of its tables."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self.tables: list[list[list[tuple[str, int]]]] = []
        self.feed(page)
        self.close()
        assert self.open == [], f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append((tag, given))
        if tag in ("td", "th", "tr", "tbody", "tfoot"):
            closed = {"td": ("td", "th"), "th": ("td", "th"), "tr": ("td", "th", "tr")}.get(tag, IMPLIED)
            while self.open[-1] in closed:
                self.open.pop()
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append(("", int(given.get("rowspan") or 1)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self.open[-1] in IMPLIED and self.open[-1] != tag:
            self.open.pop()
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"] and self.elements[-1][1].get("id") == "data":
            self.data += data
        if "table" in self.open and "svg" not in self.open and self.tables[-1] and self.tables[-1][-1]:
            text, span = self.tables[-1][-1][-1]
            self.tables[-1][-1][-1] = (text + data, span)

    def rows(self) -> set[tuple[str, ...]]:
        """The rows of all tables, with what a cell spans repeated."""
        found = set()
        for table in self.tables:
            held: dict[int, tuple[str, int]] = {}  # column -> what reaches down into the next rows, and how far
            for cells in table:
                row: list[str] = []
                waiting = list(cells)
                while waiting or len(row) in held:
                    if len(row) in held:
                        text, left = held.pop(len(row))
                    else:
                        text, left = waiting.pop(0)
                    if left > 1:
                        held[len(row)] = (text, left - 1)
                    row.append(" ".join(text.replace("\u200b", "").split()))
                held = {k: v for k, v in held.items() if k < len(row)}
                found.add(tuple(row))
        return found

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [given for name, given in self.elements if name == tag]
