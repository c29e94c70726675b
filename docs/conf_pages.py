"""What the pages say of each config comes from the config: a comment `<!-- GROUP -->` becomes a section for each.

A comment `<!-- rest -->` becomes the reference of those public names that the page does not have yet.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import msched
from msched.config import about, conf_directory, options

PICTURES = Path(__file__).parent / "pictures"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    shown = re.sub(r"^<!-- (workload|solver|device) -->$", lambda found: sections(found[1]), markdown, flags=re.M)
    return shown.replace("<!-- rest -->", rest(markdown))


def rest(markdown: str) -> str:
    """References to the public names of msched that `markdown` does not refer to; modules are not names."""
    public = [getattr(msched, name) for name in msched.__all__]
    paths = [f"{thing.__module__}.{thing.__name__}" for thing in public if not isinstance(thing, ModuleType)]
    return "\n".join(
        f"::: {path}" for path in paths if not re.search(rf"^::: .*\.{path.rpartition('.')[2]}$", markdown, re.M)
    )


def sections(group: str) -> str:
    """A heading, what it is, a picture where there is one, and the file, for each shipped config of the group."""
    return "\n".join(section(group, name) for name in options(group))


def section(group: str, name: str) -> str:
    """One of `sections`."""
    lines = (conf_directory() / group / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    body = "\n".join(f"    {line}" for line in lines[1:]).strip("\n")
    picture = (
        f"![{name}](pictures/{name}.svg)\n\n" if (PICTURES / f"{name}.svg").is_file() and group == "workload" else ""
    )
    title = f'??? note "conf/{group}/{name}.yaml"\n\n    ```yaml\n{body}\n    ```\n'
    return f"### {name}\n\n{about(group, name)}\n\n{picture}{title}"
