"""Texts of whole numbers: read line by line, each figure with its place, and no more kept than the text can hold."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from msched.errors import FormatError

LARGEST_BYTES = 2**24
_TABLE = 2**24  # most entries of a table of ops (with their modes) by engines
_WHOLE = re.compile(r"[0-9]{1,18}")
_RULE = re.compile(r"#.*|[-*+=]{2,}")  # a comment, or a line drawn between two sections


class Figures:
    """The figures of a text, in the order of its lines; comments (`#`), rules and empty lines are skipped."""

    def __init__(self, data: bytes) -> None:
        try:
            self._text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FormatError(f"byte {error.start} is not UTF-8 text") from error
        self.line = 0
        self._lines = io.StringIO(self._text)
        self._waiting: list[str] = []  # words of the current line that `take` has not given, last first

    def texts(self) -> Iterator[str]:
        """The lines with something in them, stripped; `line` is the number of the one given last."""
        for line in self._lines:
            self.line += 1
            stripped = line.strip()
            if stripped and not _RULE.fullmatch(stripped):
                yield stripped

    def text(self, what: str) -> str:
        """The next line with something in it. Raises FormatError where the text ends before `what`."""
        for line in self.texts():
            return line
        raise FormatError(f"ends at line {self.line}, where {what} should follow; the file is cut short")

    def row(self, what: str) -> list[int]:
        """The figures of the next line."""
        return [self.whole(word) for word in self.text(what).split()]

    def take(self, count: int, what: str) -> list[int]:
        """The next `count` figures, on whatever lines they stand."""
        taken: list[int] = []
        while len(taken) < count:
            if not self._waiting:
                self._waiting = self.text(what).split()[::-1]
            taken.append(self.whole(self._waiting.pop()))
        return taken

    def end(self, what: str) -> None:
        """Raise FormatError if anything but comments follows `what`, the last that the format has."""
        if self._waiting or next(self.texts(), None) is not None:
            raise FormatError(f"line {self.line}: more figures behind {what}, the last that the file announces")

    def whole(self, word: str) -> int:
        """A figure of the current line. Raises FormatError for anything but a whole number from 0 to 10^18 - 1."""
        if _WHOLE.fullmatch(word):
            return int(word)
        shown = word if len(word) <= 40 else f"{word[:40]}..."
        if re.fullmatch(r"[0-9]+", word):
            wrong = "is too large; the largest figure that is read is 10^18 - 1"
        elif re.fullmatch(r"-[0-9]+", word):
            wrong = "is negative; figures are 0 or more"
        else:
            wrong = "is not a whole number"
        raise FormatError(f"line {self.line}: {shown!r} {wrong}")

    def expect(self, least: int, what: str) -> None:
        """Raise FormatError where `what` takes at least so many figures and the text cannot hold them."""
        if 2 * least > len(self._text) + 1:
            raise FormatError(
                f"line {self.line}: {what} take at least {least} figures, more than the {len(self._text)} characters "
                "of the file can hold; a figure is wrong or the file is cut short"
            )

    def table(self, rows: int, engines: int) -> None:
        """Raise FormatError for a table of demands that would not fit into memory."""
        if rows * engines > _TABLE:
            raise FormatError(
                f"line {self.line}: {rows} ops and alternatives on {engines} engines are more than can be read; "
                f"their product may be {_TABLE} at most"
            )


def first_rows(head: bytes) -> list[list[bytes]]:
    """The words of each line in the head of a file that is whole there; comments and empty lines are skipped."""
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    whole = lines[:-1] if len(lines) > 1 and len(head) >= 2**16 else lines
    rows = [line.split() for line in whole if not line.lstrip().startswith(b"#")]
    return [row for row in rows if row]
