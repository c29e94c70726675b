from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from msched.study.interruption import interruptible


def test_result_and_exception_come_through() -> None:
    assert interruptible(lambda: 7, threading.Event()) == 7
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0, threading.Event())


def test_work_runs_beside_the_caller_who_ticks() -> None:
    ticked, where = threading.Event(), []

    def work() -> bool:
        where.append(threading.current_thread())
        return ticked.wait(10)

    assert interruptible(work, threading.Event(), ticked.set)
    assert where[0] is not threading.current_thread()


def test_outside_of_the_main_thread_signals_are_left_alone() -> None:
    before, results = signal.getsignal(signal.SIGINT), []
    thread = threading.Thread(target=lambda: results.append(interruptible(lambda: 7, threading.Event())))
    thread.start()
    thread.join()
    assert results == [7]
    assert signal.getsignal(signal.SIGINT) == before


def test_second_signal_ends_a_process_that_does_not_stop() -> None:
    program = (
        "import threading\n"
        "from msched.study.interruption import interruptible\n"
        "stop = threading.Event()\n"
        "def work():\n"
        "    print('ready', flush=True)\n"
        "    stop.wait()\n"
        "    print('asked', flush=True)\n"
        "    threading.Event().wait()\n"
        "interruptible(work, stop)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == -signal.SIGINT
    process.stdout.close()
