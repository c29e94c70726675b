"""Docstrings as they are written here, with a line for each argument, as Markdown with an item for each."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ITEM = re.compile(r"^(`?[a-z_]\w*`?(?: \([^)]*\))?(?:, `?[a-z_]\w*`?(?: \([^)]*\))?)*): ")
_NEXT = re.compile(r"\. (?=[a-z_]\w*(?: \([^)]*\))?(?:, [a-z_]\w*(?: \([^)]*\))?)*: )")


class DocstringLists(griffe.Extension):
    """Rewrites every docstring that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by griffe once an object is there."""
        if obj.docstring is not None:
            obj.docstring.value = as_lists(obj.docstring.value)


def as_lists(text: str) -> str:
    """`text` with its lines of the form "name: what it is" as list items."""
    result: list[str] = []
    listing = False
    for line in text.splitlines():
        if _ITEM.match(line):
            if not listing:
                result.append("")
            listing = True
            result += [_ITEM.sub(r"- **\1**: ", part) for part in _NEXT.sub(".\n", line).split("\n")]
        elif listing and line.startswith("    "):
            result.append(f"  {line.strip()}")
        else:
            if listing and line and not line.startswith("- "):
                result.append("")
            listing = False
            result.append(line)
    return "\n".join(result)
