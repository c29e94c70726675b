"""Where the shipped Hydra configs lie, and how to read or build one of them outside of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from msched.errors import OptionError


@cache
def conf_directory() -> Path:
    """`conf/` of the checkout in an editable install, `msched/conf` in a wheel."""
    package = Path(__file__).resolve().parent
    checkout = package.parent / "conf"
    return checkout if (checkout / "config.yaml").is_file() else package / "conf"


def options(group: str) -> list[str]:
    """The names of the shipped configs of a group, sorted; those that begin with `_` are bases to inherit from."""
    return sorted(p.stem for p in (conf_directory() / group).glob("*.yaml") if not p.stem.startswith("_"))


def about(group: str, name: str) -> str:
    """What a shipped config says of itself: the comment on its first line, or nothing."""
    head = (conf_directory() / group / f"{name}.yaml").read_text(encoding="utf-8").split("\n", 1)[0]
    return head.removeprefix("# ") if head.startswith("#") else ""


def load(group: str, name: str) -> dict[str, Any]:
    """One shipped config, its inheritance resolved, as plain values. Raises OptionError for an unknown name."""
    if name not in options(group):
        raise OptionError(f"{group} {name!r} is not known; there are: {', '.join(options(group))}")
    return deepcopy(_loaded(group, name))


@cache
def _loaded(group: str, name: str) -> dict[str, Any]:
    return _composed({group: f"+{group}={name}"}, group)[group]


def load_all(group: str) -> dict[str, dict[str, Any]]:
    """All shipped configs of a group by name, in a fraction of the time that `load` takes for each.

    Each is read apart from a job, so that a value which refers to another key of a job cannot be resolved (an error of
    omegaconf); `load` resolves those that stay inside of the group.
    """
    return _composed({name: f"+{group}@{name}={name}" for name in options(group)}, group)


def _composed(overrides: Mapping[str, str], group: str) -> dict[str, dict[str, Any]]:
    """What hydra makes of each override, by the key under which it puts it."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from omegaconf import OmegaConf

    running = GlobalHydra.instance().hydra  # there is one inside of `msched run`, which must find it again
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(config_dir=str(conf_directory()), version_base="1.3"):
            composed = compose(overrides=list(overrides.values()))
    finally:
        GlobalHydra.instance().hydra = running
    result: dict[str, dict[str, Any]] = {}
    for name in overrides:
        values = OmegaConf.to_container(composed[name], resolve=True)
        if not isinstance(values, dict):
            raise OptionError(f"{group} {name!r} holds no keys")
        result[name] = {str(key): value for key, value in values.items()}
    return result


def merged(values: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with `changes`; a mapping in both changes only the keys that it names."""
    result = dict(values)
    for key, change in changes.items():
        both = isinstance(change, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], change) if both else change
    return result


def build(values: dict[str, Any]) -> Any:
    """The object that a config with a `_target_` describes.

    Raises OptionError for a target that does not exist or a parameter that it does not take, and else what it raises.
    """
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate

    try:
        return instantiate(values, _convert_="all")
    except InstantiationException as error:
        cause = error.__cause__
        if isinstance(cause, Exception) and not isinstance(cause, (TypeError, ImportError)):
            raise cause from None
        raise OptionError(f"{values.get('_target_', '?')}: {error.__cause__ or error}") from error
