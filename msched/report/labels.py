"""What the cells of a table are called: by all that differs between them, and equal cells equally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from msched.study.records import Record
from msched.study.schema import NOT_IDENTITY, leaves

_NAMED = ("workload", "device", "solver")  # groups with a column of their own
_CHOSEN = ("simulator", "objective")
_OF_THE_LABEL = "workload.path"
_WORDS = {None: "null", True: "true", False: "false"}


def workloads(records: Sequence[Record]) -> list[str]:
    """A name of each record's network: the stem of its file or its config, with as many folders as tell equal stems
    of different files apart.
    """
    parts = [_parts(record) for record in records]
    files: dict[str, set[tuple[str, ...]]] = {}
    for own in parts:
        files.setdefault(_stem(own), set()).add(own)
    kept = {stem: _shortest(found) for stem, found in files.items()}
    return ["/".join(kept[_stem(own)](own)) for own in parts]


def variants(records: Sequence[Record], names: Sequence[str]) -> list[tuple[str, ...]]:
    """What tells the records of a table apart beside workload (`names`), device and solver: `seed=1`, `streams=4`.

    A key of the main config stands at every record where it differs between any two; one of a workload, device or
    solver at every record of that name.
    """
    groups = _readable_groups(records)
    flat = [_words(record, groups) for record in records]
    scopes = [{"workload": n, "device": r.names.device, "solver": r.names.solver}
              for r, n in zip(records, names, strict=True)]  # fmt: skip
    seen: dict[tuple[str, str], dict[str, list[str]]] = {}
    size: dict[tuple[str, str], int] = {}
    for found, scope in zip(flat, scopes, strict=True):
        for group in ("", *_NAMED):
            place = (group, scope.get(group, ""))
            size[place] = size.get(place, 0) + 1
        for path, value in found.items():
            seen.setdefault(_place(path, scope), {}).setdefault(path, []).append(value)
    differs = {
        (place, path)
        for place, values in seen.items()
        for path, found in values.items()
        if len(set(found)) > 1 or len(found) < size[place]
    }
    return [
        tuple(f"{path}={found[path]}" for path in sorted(found) if (_place(path, scope), path) in differs)
        for found, scope in zip(flat, scopes, strict=True)
    ]


def _place(path: str, scope: Mapping[str, str]) -> tuple[str, str]:
    """Among which records a key is compared: those of the same name of its group, or all."""
    group = path.split(".")[0]
    return (group, scope[group]) if group in scope and "." in path else ("", "")


def _words(record: Record, groups: Sequence[str]) -> dict[str, str]:
    """The keys of the config as text; a group that its name says all about is one word."""
    found = {
        path: str(_WORDS.get(value, value) if value is None or isinstance(value, bool) else value)
        for path, value in leaves(record.config)
        if path.split(".")[0] not in (*NOT_IDENTITY, *groups) and path != _OF_THE_LABEL
    }
    return found | {group: getattr(record.names, group) for group in groups}


def _readable_groups(records: Sequence[Record]) -> list[str]:
    """Those of the groups simulator and objective whose chosen name stands for one and the same config everywhere."""
    result = []
    for group in _CHOSEN:
        meaning: dict[str, set[Any]] = {}
        for record in records:
            meaning.setdefault(getattr(record.names, group), set()).add(tuple(leaves(record.config.get(group))))
        if all(name and len(configs) == 1 for name, configs in meaning.items()):
            result.append(group)
    return result


def _parts(record: Record) -> tuple[str, ...]:
    path = record.config.get("workload", {}).get("path")
    return PurePath(path).parts if isinstance(path, str) and PurePath(path).parts else (record.names.workload,)


def _stem(parts: tuple[str, ...]) -> str:
    return PurePath(parts[-1].removesuffix(".gz")).stem


def _shortest(files: set[tuple[str, ...]]) -> Any:
    """How to name each of several files of one stem: the fewest last parts of the path that differ for all."""

    def named(count: int, own: tuple[str, ...]) -> tuple[str, ...]:
        return (*own[-count:-1], _stem(own))

    for count in range(1, max(map(len, files)) + 1):
        if len({named(count, own) for own in files}) == len(files):
            return lambda own: named(count, own)
    return lambda own: own
