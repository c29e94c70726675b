"""Device: every shipped file is complete, sourced, and says what its sources say; broken descriptions are refused."""

from typing import Any

import pytest

from msched.config import load, options
from msched.device import Device, device_from
from msched.errors import DeviceError

ALL = options("device")
ASCEND = ["ascend_310p3", "ascend_910b3", "atlas_800i_a2"]


def shipped(name: str) -> Device:
    return device_from(load("device", name))


def test_the_five_devices_are_shipped() -> None:
    assert ALL == ["a100", "ascend_310p3", "ascend_910b3", "atlas_800i_a2", "h200"]


@pytest.mark.parametrize("name", ALL)
def test_a_file_names_itself_and_places_every_class_of_work(name: str) -> None:
    device = shipped(name)
    assert device.name == name
    assert set(device.placement) == {"matrix", "vector", "attention", "control", "host", "image", "collective", "copy"}
    assert all(device.placement.values())


@pytest.mark.parametrize("name", ALL)
def test_every_figure_has_a_source_or_is_marked_assumed(name: str) -> None:
    values = load("device", name)
    sources = values.pop("sources")
    del values["name"]
    paths = list(figures(values))
    unsourced = [p for p in paths if not any(p == s or p.startswith(f"{s}.") for s in sources)]
    assert unsourced == []
    idle = [s for s in sources if not any(p == s or p.startswith(f"{s}.") for p in paths)]
    assert idle == [], "a source that speaks of no figure of this device"
    assert all(len(text) > 6 for text in sources.values())


def figures(value: Any, path: str = "") -> Any:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from figures(inner, f"{path}.{key}" if path else key)
    elif value is not None:
        yield path


@pytest.mark.parametrize(
    ("name", "engine", "units", "tflops"),
    [
        # Peaks in FP16: the platform files of CANN give cores x MHz x 8192, the NVIDIA data sheets the total.
        ("atlas_800i_a2", "ai_core", 24, 353.9),
        ("ascend_910b3", "ai_core", 20, 294.9),
        ("ascend_310p3", "ai_core", 8, 69.5),
        ("a100", "sm", 108, 312.0),
        ("h200", "sm", 132, 989.5),
    ],
)
def test_peaks_are_the_published_ones(name: str, engine: str, units: int, tflops: float) -> None:
    unit = shipped(name).engines[engine]
    assert unit.units == units
    assert unit.units * unit.flops_per_ns / 1000 == pytest.approx(tflops, abs=0.05)


@pytest.mark.parametrize(
    ("name", "vector_cores", "ai_cpus", "memory_bytes"),
    [
        ("atlas_800i_a2", 48, 6, 64 * 2**30),
        ("ascend_910b3", 40, 6, 64 * 2**30),
        ("ascend_310p3", 7, 7, 24_000_000_000),
    ],
)
def test_ascend_counts_are_those_of_the_platform_files(
    name: str, vector_cores: int, ai_cpus: int, memory_bytes: int
) -> None:
    device = shipped(name)
    assert list(device.engines) == ["ai_core", "vector_core", "ai_cpu", "dvpp", "hccl"]
    assert device.engines["vector_core"].units == vector_cores
    assert device.engines["ai_cpu"].units == ai_cpus
    assert device.memory.bytes == memory_bytes


@pytest.mark.parametrize(
    ("name", "streams", "tasks", "events"),
    [
        ("atlas_800i_a2", 1984, 2013, 65536),
        ("ascend_910b3", 1984, 2013, 65536),
        ("ascend_310p3", 992, 2042, 1023),
        ("a100", None, None, None),
        ("h200", None, None, None),
    ],
)
def test_limits_are_those_of_the_run_time(
    name: str, streams: int | None, tasks: int | None, events: int | None
) -> None:
    device = shipped(name)
    assert (device.streams, device.tasks_per_stream, device.events) == (streams, tasks, events)


@pytest.mark.parametrize("name", ASCEND)
def test_engine_flags_are_those_of_the_engine_table_of_ge(name: str) -> None:
    engines = shipped(name).engines
    assert {key for key, engine in engines.items() if engine.independent} == {"hccl"}
    assert {key for key, engine in engines.items() if engine.attach} == {"ai_cpu", "dvpp"}
    assert {key for key, engine in engines.items() if engine.communication} == {"hccl"}
    assert not any(engine.skip for engine in engines.values())


@pytest.mark.parametrize("name", ["atlas_800i_a2", "ascend_910b3"])
def test_a_mix_block_holds_one_cube_and_two_vector_cores(name: str) -> None:
    assert list(shipped(name).placement["attention"].items()) == [("ai_core", 1), ("vector_core", 2)]


SMALL: dict[str, Any] = {
    "name": "small",
    "engines": {"core": {"units": 4}},
    "placement": {"matrix": {"core": 1}},
    "memory": {"bytes": 1000, "bytes_per_ns": 10},
    "link": {"latency_ns": 100, "bytes_per_ns": 1},
}


def test_a_small_description_is_enough() -> None:
    device = device_from(SMALL)
    assert device.engines["core"].units == 4
    assert (device.streams, device.gap_ns) == (None, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"engines": {}}, "has no engines"),
        ({"engines": {"core": {"units": 0}}}, "engine 'core'"),
        ({"engines": {"core": {"units": 4, "flops_per_ns": -1}}}, "engine 'core'"),
        ({"engines": {"core": {"units": 4, "flops_per_ns": float("inf")}}}, "finite"),
        ({"engines": {"core": {"units": 4, "tile": [0, 256]}}}, "engine 'core': tile"),
        ({"engines": {"core": {"units": 4, "streams": 0}}}, "engine 'core'"),
        ({"engines": {"core": {"units": 4, "colour": "red"}}}, "colour"),
        ({"placement": {"matrix": {"tensor_core": 1}}}, "no engine 'tensor_core'"),
        ({"placement": {"matrix": {"core": 5}}}, "5 units of 'core'"),
        ({"streams": 0}, "streams is 0"),
        ({"events": -1}, "events is -1"),
        ({"gap_ns": -1}, "costs"),
        ({"memory": {"bytes": 1000, "bytes_per_ns": 0}}, "bandwidths"),
        ({"memory": {"bytes": 1000, "bytes_per_ns": float("nan")}}, "finite"),
        ({"link": {"latency_ns": 100, "bytes_per_ns": 1, "chips": 0}}, "link.chips is 0"),
        ({"link": {"latency_ns": 100}}, "bytes_per_ns"),
    ],
)
def test_a_broken_description_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DeviceError, match=message) as caught:
        device_from(SMALL | change)
    assert "'small'" in str(caught.value)
