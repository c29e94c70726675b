"""Where the shipped Hydra configs lie, and how to read or build one of them outside of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
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


def load(group: str, name: str) -> dict[str, Any]:
    """One shipped config, its inheritance resolved, as plain values. Raises OptionError for an unknown name."""
    if name not in options(group):
        raise OptionError(f"{group} {name!r} is not known; there are: {', '.join(options(group))}")
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(config_dir=str(conf_directory()), version_base="1.3"):
        composed = compose(overrides=[f"+{group}={name}"])
        values = OmegaConf.to_container(composed[group], resolve=True)
    if not isinstance(values, dict):
        raise OptionError(f"{group} {name!r} holds no keys")
    return {str(key): value for key, value in values.items()}


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
