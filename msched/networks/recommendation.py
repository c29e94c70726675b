"""DLRM for inference: one chip's share of a recommendation model on several chips.

Naumov et al., Deep Learning Recommendation Model for Personalization and Recommendation Systems, arXiv 1906.00091. As
in its section on parallelism, the tables are shared out among the chips and the perceptrons are copied to all: a chip
looks up its own tables for the samples of every chip, and an all-to-all brings to each the vectors of its own samples.

Dimensions are those of the MLPerf benchmarks: `dlrm` (facebookresearch/dlrm, `bench/run_and_time.sh`, Criteo Terabyte
with at most 40 million rows a table), its features meeting in dot products; `dlrm_dcnv2` (torchrec, `torchrec_dlrm`,
several look-ups a table), its features crossed as in Wang et al., DCN V2, arXiv 2008.13535, sections 3.2 and 3.5, by
matrices of low rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from msched.errors import OptionError
from msched.graph import Matmul, OpGraph, Rows
from msched.networks.assembly import Assembly, at_least, one_of
from msched.networks.random_work import number

_DENSE = 13  # features that are numbers
_INDEX_BYTES = 8
_SIGMOID = 4  # operations an element: 1 / (1 + exp(-x))


class Model(NamedTuple):
    """A benchmark: rows of its tables and look-ups in each for a sample; whether features are crossed or multiplied."""

    table_rows: tuple[int, ...]
    lookups: tuple[int, ...]
    crossed: bool


MODELS = {
    "dlrm": Model(
        (
            39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10,
            2208, 11938, 155, 4, 976, 14, 39979771, 25641295, 39664984, 585935, 12972, 108, 36,
        ),
        (1,) * 26,
        False,
    ),
    "dlrm_dcnv2": Model(
        (
            40000000, 39060, 17295, 7424, 20265, 3, 7122, 1543, 63, 40000000, 3067956, 405282, 10,
            2209, 11938, 155, 4, 976, 14, 40000000, 40000000, 40000000, 590152, 12973, 108, 36,
        ),
        (3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1),
        True,
    ),
}  # fmt: skip


def build(
    model: str = "dlrm",
    ranks: int = 8,
    batch: int = 2048,
    tables: int | None = None,
    lookups: int | None = None,
    cpu_share: float = 0.25,
    embedding: int = 128,
    bottom: Sequence[int] = (512, 256),
    top: Sequence[int] = (1024, 1024, 512, 256),
    cross_layers: int = 3,
    cross_rank: int = 512,
    dtype_bytes: int = 2,
) -> OpGraph:
    """A look-up for each table of this chip and 22 further ops for `dlrm`, 31 for `dlrm_dcnv2`; no all-to-all on one.

    model: dlrm or dlrm_dcnv2. ranks: chips. batch: samples of each.
    tables: on all chips; if more than the 26 of the benchmark, those again from the first. Dealt out one by one, the
        largest first, to all chips in turn; this chip is the first, which has the most to do.
    lookups: of each sample in every table; those of the benchmark unless given.
    cpu_share: share of the tables of this chip, the largest, that lie in the memory of the host: AI CPU reads them, or
        a copy engine of a GPU brings the rows. They take no device memory.
    embedding: channels of a vector. bottom, top: inner widths of the perceptrons; the first ends in `embedding`
        channels, the second in one. cross_layers, cross_rank: of `dlrm_dcnv2`. dtype_bytes: of everything but indices.

    For each sample of this chip the matrix products of `dlrm` take 2 (B + (t + 1)^2 d + T) operations, where t is the
    number of tables, d the embedding, and B and T are the sums of the products of successive widths of the perceptrons;
    those of `dlrm_dcnv2` 2 (B + 2 l r (t + 1) d + T), for l cross layers of rank r.

    Raises OptionError: an unknown model, or a figure out of range.
    """
    known = one_of("model", model, MODELS)
    tables = len(known.table_rows) if tables is None else tables
    at_least(1, ranks=ranks, batch=batch, tables=tables, embedding=embedding, dtype_bytes=dtype_bytes)
    at_least(1, cross_layers=cross_layers, cross_rank=cross_rank)
    number("cpu_share", cpu_share, 0, 1)
    for name, widths in (("bottom", bottom), ("top", top)):
        if not isinstance(widths, Sequence) or isinstance(widths, str):
            raise OptionError(f"{name} is {widths!r}; a list of widths is needed")
        for index, width in enumerate(widths):
            at_least(1, **{f"{name}[{index}]": width})
    if lookups is not None:
        at_least(1, lookups=lookups)
    net = _Network(Assembly(f"recommendation_{model}"), batch, ranks, embedding, dtype_bytes)
    vectors = net.exchange(_lookups(net, known, tables, lookups, cpu_share), tables)
    dense = net.graph.source("dense", batch * _DENSE * dtype_bytes, token_wise=True)
    dense = net.perceptron("bottom", dense, [_DENSE, *bottom, embedding])
    if known.crossed:
        features, wide = net.crossed(dense, vectors, tables, cross_layers, cross_rank)
    else:
        features, wide = net.products(dense, vectors, tables)
    scores = net.perceptron("top", features, [wide, *top, 1], last="Sigmoid")
    return net.graph.graph({scores})


def _lookups(net: _Network, model: Model, tables: int, lookups: int | None, cpu_share: float) -> list[int]:
    """The tensors of vectors that the tables of the first chip give."""
    published = len(model.table_rows)
    rows = [model.table_rows[table % published] for table in range(tables)]
    own = sorted(range(tables), key=lambda table: -rows[table])[:: net.ranks]
    on_host = int(cpu_share * len(own) + 0.5)
    return [
        net.lookup(f"table{table}", rows[table], lookups or model.lookups[table % published], place < on_host)
        for place, table in enumerate(own)
    ]


@dataclass(frozen=True)
class _Network:
    """Writes the layers of one chip into a graph. Every op has a row a sample: look-ups one of each chip."""

    graph: Assembly
    batch: int
    ranks: int
    embedding: int
    element_bytes: int

    @cached_property
    def rows(self) -> Rows:
        return Rows(self.batch, 1)

    def lookup(self, name: str, rows: int, lookups: int, on_host: bool) -> int:
        """Sums of `lookups` rows of a table, for the samples of all chips."""
        samples, width = self.batch * self.ranks, self.embedding * self.element_bytes
        inputs = [self.graph.source(f"{name}.indices", samples * lookups * _INDEX_BYTES, token_wise=True)]
        if not on_host:
            inputs.append(self.graph.source(f"{name}.weight", rows * width))
        return self.graph.op(
            f"{name}.lookup",
            # AI CPU runs it as a kernel of the user's own; to a GPU the rows come over the bus
            "HostEmbeddingBag" if on_host else "EmbeddingBag",
            inputs,
            samples * width,
            flops=samples * (lookups - 1) * self.embedding,
            bytes_read=samples * lookups * (_INDEX_BYTES + width),
            rows=self.rows,
        )

    def exchange(self, vectors: Sequence[int], tables: int) -> int:
        """The vectors of all tables for the samples of this chip."""
        sent = sum(map(self.graph.bytes, vectors))
        x = self.graph.op("lookups", "Concat", vectors, sent, rows=self.rows)
        if self.ranks == 1:
            return x
        return self.graph.op(
            "all_to_all",
            "HcomAllToAllV",
            [x],
            self.batch * tables * self.embedding * self.element_bytes,
            participants=self.ranks,
            payload_bytes=sent,
            communicator="world",
            rows=self.rows,
        )

    def perceptron(self, name: str, x: int, widths: Sequence[int], last: str = "Relu") -> int:
        """Fully connected layers, each with its activation."""
        for layer, (wide, out) in enumerate(pairwise(widths), 1):
            x = self._linear(f"{name}{layer}", x, wide, out)
            kind = last if layer == len(widths) - 1 else "Relu"
            x = self._elementwise(f"{name}{layer}.{kind.lower()}", kind, [x], _SIGMOID if kind == "Sigmoid" else 1)
        return x

    def products(self, dense: int, vectors: int, tables: int) -> tuple[int, int]:
        """The dense vector beside the dot products of all pairs of vectors, and how many channels they make."""
        count, pairs = tables + 1, (tables + 1) * tables // 2
        x = self._concat("interaction.vectors", [dense, vectors])
        size = self.batch * count * count * self.element_bytes
        shape = Matmul(self.batch, count, count, self.embedding)
        x = self.graph.op("interaction.products", "BatchMatMul", [x], size, matmul=shape, rows=self.rows)
        size = self.batch * pairs * self.element_bytes
        x = self.graph.op("interaction.triangle", "Gather", [x], size, bytes_read=size, rows=self.rows)
        return self._concat("interaction.features", [dense, x]), self.embedding + pairs

    def crossed(self, dense: int, vectors: int, tables: int, layers: int, rank: int) -> tuple[int, int]:
        """x' = x0 * (U (V x) + b) + x on all vectors side by side, `layers` times, and how many channels they have."""
        wide = (tables + 1) * self.embedding
        first = x = self._concat("interaction.vectors", [dense, vectors])
        for layer in range(1, layers + 1):
            name = f"interaction.cross{layer}"
            y = self._linear(f"{name}.down", x, wide, rank, bias=False)
            y = self._linear(f"{name}.up", y, rank, wide)
            y = self._elementwise(f"{name}.multiply", "Mul", [first, y], 1)
            x = self._elementwise(f"{name}.add", "Add", [y, x], 1)
        return x, wide

    def _linear(self, name: str, x: int, wide: int, out: int, bias: bool = True) -> int:
        inputs = [x, self.graph.source(f"{name}.weight", wide * out * self.element_bytes)]
        if bias:
            inputs.append(self.graph.source(f"{name}.bias", out * self.element_bytes))
        shape, size = Matmul(1, self.batch, out, wide), self.batch * out * self.element_bytes
        return self.graph.op(name, "Gemm", inputs, size, matmul=shape, rows=self.rows)

    def _elementwise(self, name: str, kind: str, inputs: Sequence[int], operations: int) -> int:
        size = self.graph.bytes(inputs[0])
        return self.graph.op(name, kind, inputs, size, flops=operations * (size // self.element_bytes), rows=self.rows)

    def _concat(self, name: str, inputs: Sequence[int]) -> int:
        return self.graph.op(name, "Concat", inputs, sum(map(self.graph.bytes, inputs)), rows=self.rows)
