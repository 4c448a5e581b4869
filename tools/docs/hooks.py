"""What MkDocs does for the site beyond its settings."""

import os
import posixpath
import re
from pathlib import Path

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
WORKER, STYLE = "assets/javascripts/worker_from_disk.js", "assets/stylesheets/site.css"
REACHABLE = "assets/javascripts/reachable.js"
SEARCH = '<div class="md-search" data-md-component="search" role="dialog"'


@event_priority(-100)
def on_config(config):
    """In place of a script from the network, which the plugin offline names."""
    config.extra["polyfills"] = [WORKER]
    config.extra_css = [STYLE]
    config.extra_javascript = [REACHABLE]


def on_files(files, config):
    for path in (WORKER, STYLE, REACHABLE):
        text = Path(__file__).with_name(posixpath.basename(path)).read_text(encoding="utf-8")
        files.append(File.generated(config, path, content=text))


def on_post_page(output, **_):
    """Names the dialog of the search for screen readers, and makes no headers of empty cells."""
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"').replace("<th></th>", "<td></td>")


def on_page_markdown(markdown, page, **_):
    """Shows links to files outside docs/ as their paths: the site has pages of docs/ alone. Links to the pages of
    Doxygen where `./dev docs` makes them."""
    if os.environ.get("NEUROSHARD_DOCS_CPP"):
        markdown = markdown.replace("<!-- cpp -->", '<a href="../cpp/index.html">The pages of C and C++</a>')
    folder = posixpath.dirname(page.file.src_uri)

    def shown(link):
        text, target = link[1], link[2]
        path = posixpath.normpath(posixpath.join("docs", folder, target))
        if "://" in target or path.startswith("docs/"):
            return link[0]
        return text if text.strip("`") == path else f"{text} (`{path}`)"

    parts = FENCED.split(markdown)
    parts[::2] = [LINK.sub(shown, text) for text in parts[::2]]
    return "".join(parts)
