from __future__ import annotations

from collections.abc import Callable

from msched.report.labels import variants, workloads
from msched.study.records import Record

Make = Callable[..., Record]
MEMORY = {"order": ["peak_bytes", "makespan_ns"]}


def labelled(*records: Record) -> list[str]:
    return [" ".join(words) for words in variants(records, workloads(records))]


def file(record: Make, path: str) -> Record:
    made = record(workload="file")
    made.config["workload"] = {"path": path}
    return made


def test_equal_configurations_have_equal_labels_whatever_else_the_table_holds(record: Make) -> None:
    found = [record("single", streams=4), record("single", streams=8), record("heft", streams=4, seed=0)]
    found += [record("heft", workload="other", streams=4, seed=0)]
    for made in found[:2]:
        made.config["seed"] = 0
    assert labelled(*found) == ["streams=4", "streams=8", "streams=4", "streams=4"]
    assert labelled(*found[2:]) == ["", ""]


def test_a_difference_between_solvers_is_told(record: Make) -> None:
    assert labelled(record("single", streams=4), record("heft", streams=8)) == ["streams=4", "streams=8"]


def test_keys_of_a_network_stand_at_that_network_only(record: Make) -> None:
    found = [record("single", workload=name) for name in ("a", "a", "b")]
    for made, layers in zip(found, (1, 2, 2), strict=True):
        made.config["workload"] = {"layers": layers}
    assert labelled(*found) == ["workload.layers=1", "workload.layers=2", ""]


def test_a_key_that_others_lack_is_a_difference(record: Make) -> None:
    found = [record(placement=None), record(placement={"Conv": "vector"}), record(placement={"Conv": "matrix"})]
    assert labelled(*found) == ["placement=null", "placement.Conv=vector", "placement.Conv=matrix"]
    assert labelled(record(), record(deterministic=True)) == ["", "deterministic=true"]


def test_an_objective_is_named_where_its_name_says_all(record: Make) -> None:
    one, other = record(objective_name="makespan"), record(objective_name="memory", objective=MEMORY)
    assert labelled(one, other) == ["objective=makespan", "objective=memory"]
    changed = record(objective_name="memory", objective={"order": ["peak_bytes", "waits"]})
    assert labelled(other, changed) == ["objective.order[1]=makespan_ns", "objective.order[1]=waits"]


def test_files_are_named_by_their_stems(record: Make) -> None:
    found = [file(record, path) for path in ("/data/zoo/vgg.onnx", "/data/zoo/resnet.onnx.gz", "/data/zoo/vgg.onnx")]
    assert workloads(found) == ["vgg", "resnet", "vgg"]
    assert labelled(*found) == ["", "", ""]


def test_folders_tell_files_of_one_stem_apart(record: Make) -> None:
    paths = ("/data/vgg/gpus=4/graph.txt", "/data/vgg/gpus=8/graph.txt", "/data/gnmt/gpus=4/graph.txt")
    found = [file(record, path) for path in paths]
    assert workloads(found[:2]) == ["gpus=4/graph", "gpus=8/graph"]
    assert workloads(found) == ["vgg/gpus=4/graph", "vgg/gpus=8/graph", "gnmt/gpus=4/graph"]
    assert workloads([file(record, "a/m.onnx"), file(record, "a/m.json"), file(record, "b/n.json")]) == [
        "a/m.onnx", "a/m.json", "n",
    ]  # fmt: skip
    assert workloads([file(record, "a/net.onnx"), record()]) == ["a/net", "net"]
