"""A device with figures that can be worked out in the head."""

from __future__ import annotations

from typing import Any

from msched.device import Device, device_from

# A tile of depth k costs k ns on one cube: 2 x 128 x 256 x k flops at 65536 flops a ns. A cube moves 10 bytes a ns, the
# memory 30. A vector core takes blocks of 1000 bytes, at 100 flops a ns. A MIX block holds one cube and two of these.
TOY: dict[str, Any] = {
    "name": "toy",
    "engines": {
        "cube": {"units": 4, "flops_per_ns": 65536, "bytes_per_ns": 10, "block_bytes": 1000},
        "vector": {"units": 6, "flops_per_ns": 100, "bytes_per_ns": 10, "block_bytes": 1000},
        "cpu": {"units": 2, "flops_per_ns": 1, "bytes_per_ns": 1, "attach": True},
        "link": {"units": 1, "independent": True, "communication": True, "streams": 1},
    },
    "placement": {
        "matrix": {"cube": 1},
        "vector": {"vector": 1},
        "attention": {"cube": 1, "vector": 2},
        "control": {"cpu": 1},
        "collective": {"link": 1},
    },
    "memory": {"bytes": 100_000, "bytes_per_ns": 30, "alignment": 64},
    "link": {"latency_ns": 100, "bytes_per_ns": 10},
    "streams": 8,
    "tasks_per_stream": 50,
    "events": 20,
    "gap_ns": 1,
    "record_ns": 2,
    "wait_ns": 3,
    "host_issue_ns": 4,
    "task_floor_ns": 5,
}


def toy(**changes: Any) -> Device:
    return device_from(TOY | changes)
