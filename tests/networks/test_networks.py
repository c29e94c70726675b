"""Generated networks: finding one, and the parameters that it takes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from msched.config import build, load, options
from msched.errors import OptionError
from msched.graph import OpGraph
from msched.networks import network, networks


def test_every_builder_works_with_its_defaults() -> None:
    assert {"inception", "llama", "onnx_light", "random_layered"} <= set(networks())
    for name in networks():
        assert network(name) == network(name)


def test_what_is_no_network() -> None:
    with pytest.raises(OptionError, match=r"network 'lama' is not known; there are: .*inception, llama"):
        network("lama")
    with pytest.raises(OptionError, match="network 'inception' has no parameter size; it takes: batch, image"):
        network("inception", size=3)


@pytest.mark.parametrize("workload", [w for w in options("workload") if w not in ("file", "pipedream")])
def test_every_workload_builds(workload: str) -> None:
    assert isinstance(build(load("workload", workload)), OpGraph)


@pytest.mark.parametrize(("workload", "format_name"), [("file", None), ("pipedream", "pipedream")])
def test_workloads_that_need_a_path(workload: str, format_name: str | None) -> None:
    values = load("workload", workload)
    assert (values["path"], values["format_name"]) == ("???", format_name)


def test_every_workload_begins_by_saying_what_it_is() -> None:
    from msched.config import conf_directory

    for name in options("workload"):
        first = (conf_directory() / "workload" / f"{name}.yaml").read_text().splitlines()[0]
        assert first.startswith("# ")


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("llama", {"size": "9b"}, "size '9b' is not known; there are: 7b, 13b"),
        ("llama", {"size": 65}, "size 65 is not known"),
        ("llama", {"phase": "train"}, "phase 'train' is not known; there are: prefill, decode"),
        ("llama", {"logits": "none"}, "logits 'none' is not known; there are: last, all"),
        ("llama", {"batch": 0}, "batch is 0; a whole number of at least 1 is needed"),
        ("llama", {"sequence": 2.5}, r"sequence is 2\.5; a whole number"),
        ("llama", {"layers": -1}, "layers is -1"),
        ("llama", {"context": -1}, "context is -1; a whole number of at least 0"),
        ("llama", {"dtype_bytes": True}, "dtype_bytes is True"),
        ("llama", {"size": "30b", "tensor_parallel": 8}, "tensor_parallel is 8; llama 30b has 52 heads, .*: 1, 2, 4"),
        ("inception", {"image": 74}, "image is 74; Inception v3 needs at least 75 pixels"),
        ("inception", {"batch": "1"}, "batch is '1'"),
        ("onnx_light", {"model": "resnet18"}, "model 'resnet18' is not known; there are: bvlc_alexnet, densenet121"),
        ("random_layered", {"ops": 0}, "ops is 0"),
        ("random_layered", {"width": 0}, "width is 0"),
        ("random_layered", {"seed": -1}, "seed is -1; a whole number of at least 0"),
        ("random_layered", {"edge_probability": 1.5}, r"edge_probability is 1\.5; a number from 0 to 1"),
        ("random_layered", {"mix": {"quantum": 1}}, "mix has no class 'quantum'; weights of these are needed: matrix"),
        ("random_layered", {"mix": "matrix"}, "mix is 'matrix'; weights"),
        ("random_layered", {"mix": {"matrix": 0}}, "at least one of them above 0"),
        ("random_layered", {"mix": {"matrix": "much"}}, "the weights must be numbers from 0"),
    ],
)
def test_parameters_that_make_no_sense(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        network(name, **parameters)


@pytest.mark.parametrize("slices", [True, 1.0])
def test_what_only_equals_one_slice_is_refused(slices: Any) -> None:
    with pytest.raises(OptionError, match=f"slices is {slices}; a whole number of at least 1 is needed"):
        network("fork_join", slices=slices)


def test_building_one_network_imports_nothing_that_is_slow() -> None:
    # a tenth of a second each, and more where a kernel has to be compiled: a script that builds a graph has no need
    code = "import sys, msched; msched.network('llama', layers=1, slices=2); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert {"numpy", "msched.networks.llama"} <= set(loaded)
    assert not {"numba", "networkx"} & set(loaded)
