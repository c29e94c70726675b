"""How the builders put a graph together, op by op; and the checks of their parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from msched.errors import OptionError
from msched.graph import Matmul, Op, OpGraph, Rows, Tensor

Row = TypeVar("Row")


class Assembly:
    """A graph under construction. Tensors are numbered in the order in which they appear; ops too."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._ops: list[Op] = []
        self._tensors: list[tuple[str, int, int | None, bool]] = []  # name, bytes, producer, token-wise
        self._consumers: list[list[int]] = []

    def source(self, name: str, bytes_: int, *, token_wise: bool = False) -> int:
        """A persistent tensor: a weight, a cache or an input of the network. Its number."""
        return self._tensor(name, bytes_, None, token_wise)

    def op(
        self,
        name: str,
        kind: str,
        inputs: Sequence[int],
        output_bytes: int,
        *,
        flops: int = 0,
        matmul: Matmul | None = None,
        bytes_read: int | None = None,
        bytes_written: int | None = None,
        participants: int = 0,
        payload_bytes: int = 0,
        communicator: str | None = None,
        rows: Rows | None = None,
        duration_ns: int | None = None,
        workspace_bytes: int = 0,
    ) -> int:
        """An op with one output. The number of that tensor, which also bears the op's name.

        It reads all of its inputs and writes its output unless `bytes_read` and `bytes_written` say otherwise. The
        flops of a matrix product follow from its shape.
        """
        index = len(self._ops)
        if matmul is not None and not flops:
            flops = 2 * matmul.batch * matmul.m * matmul.n * matmul.k
        self._ops.append(
            Op(
                name=name,
                kind=kind,
                flops=flops,
                bytes_read=sum(self._tensors[t][1] for t in inputs) if bytes_read is None else bytes_read,
                bytes_written=output_bytes if bytes_written is None else bytes_written,
                matmul=matmul,
                participants=participants,
                payload_bytes=payload_bytes,
                communicator=communicator,
                rows=rows,
                duration_ns=duration_ns,
                workspace_bytes=workspace_bytes,
            )
        )
        for tensor in inputs:
            self._consumers[tensor].append(index)
        return self._tensor(name, output_bytes, index)

    def bytes(self, tensor: int) -> int:
        """Size of a tensor."""
        return self._tensors[tensor][1]

    def graph(self, outputs: Collection[int]) -> OpGraph:
        """The finished graph; `outputs` live to the end."""
        tensors = [
            Tensor(
                name=name,
                bytes=size,
                producer=producer,
                consumers=tuple(self._consumers[number]),
                persistent=producer is None,
                output=number in outputs,
                token_wise=token_wise,
            )
            for number, (name, size, producer, token_wise) in enumerate(self._tensors)
        ]
        return OpGraph(self.name, tuple(self._ops), tuple(tensors))

    def name_of(self, tensor: int) -> str:
        """Name of a tensor."""
        return self._tensors[tensor][0]

    def _tensor(self, name: str, bytes_: int, producer: int | None, token_wise: bool = False) -> int:
        self._tensors.append((name, bytes_, producer, token_wise))
        self._consumers.append([])
        return len(self._tensors) - 1


def at_least(least: int, **values: int) -> None:
    """Raise OptionError unless each value is a whole number from `least` to 2^31 - 1."""
    for option, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**31:
            raise OptionError(f"{option} is {value!r}; a whole number of at least {least} is needed")


def one_of(option: str, value: str, table: Mapping[str, Row]) -> Row:
    """The row of a table that an option names. Raises OptionError with the names that there are."""
    if not isinstance(value, str) or value not in table:
        raise OptionError(f"{option} {value!r} is not known; there are: {', '.join(table)}")
    return table[value]
