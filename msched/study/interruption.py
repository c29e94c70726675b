"""A long solve that Ctrl-C, or the signal of a batch system, ends early and keeps what it found."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

Result = TypeVar("Result")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_TICK_SECONDS = 0.1


def interruptible(
    work: Callable[[], Result], stop: threading.Event, on_tick: Callable[[], None] | None = None
) -> Result:
    """What `work` returns, or the exception that it raises.

    It runs in a thread, because a signal handler only runs between the bytecodes of the main thread, and a native
    solver holds that until it is done. The first SIGINT or SIGTERM sets `stop`, and `work` is expected to return what
    it has; the second ends the process. `on_tick` is called about ten times a second from the calling thread.
    """
    outcome: Future[Result] = Future()

    def body() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=body, name="solve", daemon=True)
    with _signals_set(stop):
        thread.start()
        while thread.is_alive():
            thread.join(_TICK_SECONDS)
            if on_tick is not None:
                on_tick()
    return outcome.result()


@contextmanager
def _signals_set(stop: threading.Event) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # Python allows handlers in the main thread only
        yield
        return

    def ask(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, ask) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
