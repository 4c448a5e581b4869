"""Reads HTML and says what keeps people from using it: what screen readers miss, and texts with too little contrast.

It needs no browser; test_report_in_browser.py asks axe-core where there is one."""

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Element:
    def __init__(self, tag, attributes=(), parent=None):
        self.tag, self.attributes, self.parent, self.children = tag, dict(attributes), parent, []

    def all(self, *tags):
        """Below this one, in order."""
        for one in self.children:
            if isinstance(one, Element):
                if one.tag in tags or not tags:
                    yield one
                yield from one.all(*tags)

    def first(self, tag):
        return next(self.all(tag), None)

    def with_id(self, name):
        return next((one for one in self.all() if one.attributes.get("id") == name), None)

    def text(self):
        return "".join(one if isinstance(one, str) else one.text() for one in self.children).strip()

    def rows(self):
        """The texts of the cells of each row of a table."""
        return [[one.text() for one in row.all("th", "td")] for row in self.all("tr")]


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.top = self.at = Element("top")
        self.wrong = []
        self.feed(text)
        self.close()
        if self.at is not self.top:
            self.wrong.append(f"<{self.at.tag}> is not closed")

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        if len(names) != len(set(names)):
            self.wrong.append(f"<{tag}> has an attribute twice")
        element = Element(tag, attributes, self.at)
        self.at.children.append(element)
        if tag not in VOID:
            self.at = element

    def handle_endtag(self, tag):
        if self.at.tag != tag:
            self.wrong.append(f"</{tag}> closes <{self.at.tag}>")
        else:
            self.at = self.at.parent

    def handle_data(self, data):
        self.at.children.append(data)


def read(text):
    """The element above all; what is not well-formed fails."""
    found = Reader(text)
    assert found.wrong == []
    return found.top


def faults(top):
    """Of a page or a part of one."""
    found = []
    ids = [one.attributes["id"] for one in top.all() if "id" in one.attributes]
    found += [f"id {one} is there twice" for one in set(ids) if ids.count(one) > 1]
    for one in top.all():
        for name in ("aria-labelledby", "aria-describedby"):
            found += [f"<{one.tag}> {name} names no element: {target}"
                      for target in one.attributes.get(name, "").split() if target not in ids]
        target = one.attributes.get("href", "#")
        if one.tag == "a" and (not one.text() or (target.startswith("#") and target[1:] not in ids)):
            found.append(f"link to {target} leads nowhere or has no text")
        if "title" in one.attributes:
            found.append(f"<{one.tag}> says {one.attributes['title']!r} to those alone who hover")
    for table in top.all("table"):
        found += table_faults(table)
    levels = [int(one.tag[1]) for one in top.all("h1", "h2", "h3", "h4")]
    found += [f"heading {two} follows {one}" for one, two in zip([0, *levels], levels) if two > one + 1]
    for one in top.all("section"):
        label = top.with_id(one.attributes.get("aria-labelledby"))
        if label is None or not label.text():
            found.append("a section has no name")
    return found


def table_faults(table):
    caption = table.first("caption")
    name = caption.text() if caption is not None else ""
    found = [] if name else ["a table has no caption"]
    rows = list(table.all("tr"))
    counts = [sum(int(one.attributes.get("colspan", 1)) for one in row.all("th", "td")) for row in rows]
    if len(set(counts)) > 1:
        found.append(f"rows of table {name!r} have {sorted(set(counts))} cells")
    for one in table.all("th"):
        if one.attributes.get("scope") not in ("col", "row"):
            found.append(f"header {one.text()!r} of table {name!r} has no scope")
    if not all(one.text() for one in rows[0].all("th")) or rows[0].first("td") is not None:
        found.append(f"the first row of table {name!r} does not name its columns")
    return found


def luminance(color):
    """WCAG 2.2, relative luminance of #rgb or #rrggbb."""
    digits = color.lstrip("#")
    digits = "".join(2 * one for one in digits) if len(digits) == 3 else digits
    parts = [int(digits[at:at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """WCAG 2.2: from 1 to 21; texts need 4.5, shapes 3."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def schemes(css):
    """The variables of a style sheet that are colors, of the light and the dark scheme."""
    light, dark = re.search(r":root \{(.*?)\}.*?prefers-color-scheme: dark\) \{ :root \{(.*?)\}", css, re.DOTALL).groups()
    pairs = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})\b", one)) for one in (light, dark)]
    return {"light": pairs[0], "dark": pairs[0] | pairs[1]}
