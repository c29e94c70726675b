"""Computes what the pages show of the networks: `pictures/workloads.md`, and a picture of each small one.

Run by `make pictures`; the results are committed.
"""

from __future__ import annotations

from pathlib import Path

from msched.report import network, workloads

DEVICE = "atlas_800i_a2"
MOST_OPS = 150
FOLDER = Path(__file__).parent / "pictures"


def main(folder: Path = FOLDER) -> None:
    """Write everything into `folder`, and remove pictures of workloads that are gone or have grown."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = workloads.listing(DEVICE)
    (folder / "workloads.md").write_text(workloads.as_markdown(listed), encoding="utf-8")
    drawn = {network.write(row.workload, (), DEVICE, folder / f"{row.workload}.svg")
             for row in listed if 0 < row.ops <= MOST_OPS}  # fmt: skip
    for path in sorted(folder.glob("*.svg")):
        if path not in drawn:
            path.unlink()


if __name__ == "__main__":
    main()
