"""Input files: one reader a format, found by what a file holds and not by what it is called.

A format is a module here with four names, and nothing else in the tree learns of it:

- `WHAT`: the format in a few words, for error messages.
- `LARGEST_BYTES`: the largest file (unpacked) that its reader takes.
- `recognises(head) -> bool`: whether a file that begins with these bytes is of the format.
- `parse(data, name, **parameters) -> OpGraph`: the graph in those bytes. It sees no path, so it cannot follow one; it
  executes nothing, and raises FormatError with the place in the file for whatever it cannot read.
"""

from __future__ import annotations

import gzip
import importlib
import inspect
import pkgutil
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, cast

from msched.errors import FormatError, GraphError, OptionError
from msched.graph import OpGraph

HEAD_BYTES = 2**16  # what the recognisers see
LARGEST_UNPACKED_BYTES = 2**29  # of a gzip file, whatever its format: deflate can grow a thousandfold
_GZIP = b"\x1f\x8b"


@cache
def formats() -> Mapping[str, ModuleType]:
    """The readers by name, sorted: the modules of this package that can recognise a file."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__))
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "recognises")}


def read(path: str | Path, *, format_name: str | None = None, **parameters: Any) -> OpGraph:
    """The graph in a file of any known format, gzipped or not.

    format_name: for a file that two formats claim or none does; otherwise found by content.
    parameters: of the format's reader (`dimensions` of ONNX, `training` of PipeDream); None is as if not given.

    Raises FormatError that names the file and the place in it, OptionError for a parameter that the reader lacks.
    """
    if not isinstance(path, str | Path):
        raise OptionError(f"path is {path!r}; the path of a file is needed")
    parameters = {name: value for name, value in parameters.items() if value is not None}
    try:
        module, data = contents(Path(path), formats(), format_name, "problems are read by msched.read_problem")
        known = [p.name for p in inspect.signature(module.parse).parameters.values() if p.kind is p.KEYWORD_ONLY]
        if unknown := sorted(set(parameters) - set(known)):
            takes = ", ".join(known) or "none"
            raise OptionError(f"{path}: {module.WHAT} has no parameter {', '.join(unknown)}; it takes: {takes}")
        return cast(OpGraph, module.parse(data, stem(Path(path)), **parameters))
    except (FormatError, GraphError) as error:
        raise FormatError(f"{path}: {error}") from error


def contents(
    path: Path, readers: Mapping[str, ModuleType], format_name: str | None, elsewhere: str
) -> tuple[ModuleType, bytes]:
    """The one of `readers` that takes a file, and all its bytes, unpacked. No more is read than the reader takes.

    elsewhere: what to say of files that none of them takes. Raises FormatError, and OptionError for `format_name`.
    """
    try:
        if path.is_dir():
            raise FormatError("is a directory; give the path of one file")
        if not path.is_file():
            raise FormatError("is no regular file" if path.exists() else "there is no such file")
        with path.open("rb") as file:
            packed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
            head = stream.read(HEAD_BYTES)
            if not head:
                raise FormatError("is empty")
            module = _reader(head, readers, format_name, elsewhere)
            most = min(module.LARGEST_BYTES, LARGEST_UNPACKED_BYTES) if packed else module.LARGEST_BYTES
            data = head + stream.read(max(0, most - len(head)) + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"is gzip, but cannot be unpacked: {error}") from error
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot be read: {error}") from error
    if len(data) > most:
        raise FormatError(f"holds more than {most} bytes, the most that is read of {module.WHAT}")
    return module, data


def _reader(head: bytes, readers: Mapping[str, ModuleType], format_name: str | None, elsewhere: str) -> ModuleType:
    if format_name is not None and format_name not in readers:
        raise OptionError(f"format_name {format_name!r} is not known; there are: {', '.join(readers)}")
    claims = [format_name] if format_name else [name for name, m in readers.items() if m.recognises(head)]
    if not claims:
        looked = "; ".join(f"{module.WHAT} ({name})" for name, module in readers.items())
        raise FormatError(f"is of no known format; looked for: {looked}; {elsewhere}")
    if len(claims) > 1:
        raise FormatError(f"may be {' or '.join(claims)}; say which with format_name=")
    return readers[claims[0]]


def stem(path: Path) -> str:
    """The name of a file without its folder, its ending and `.gz`."""
    return Path(path.name.removesuffix(".gz")).stem
