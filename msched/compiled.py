"""The one way in which kernels are compiled: numba, cached on disk so that a sweep's processes compile once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(kernel: Kernel) -> Kernel:
    """`kernel` compiled at its first call with each set of argument types, keeping its Python signature for mypy."""
    return cast(Kernel, njit(cache=True, nogil=True)(kernel))
