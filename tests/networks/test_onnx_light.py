"""The light networks of the onnx package against published figures of the models that they are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import pytest

from msched.errors import OptionError
from msched.networks.onnx_light import MODELS, build

# Multiply-adds and parameters in millions. ResNet-50, VGG-19, SqueezeNet 1.1 and DenseNet-121: torchvision's table of
# models (4.09, 19.63, 0.35 and 2.83 GMAC); AlexNet in its original two groups: 61.0 million parameters.
PUBLISHED_MACS = {"resnet50": 4.09e9, "vgg19": 19.63e9, "squeezenet": 0.35e9, "densenet121": 2.83e9}
PUBLISHED_PARAMETERS = {"resnet50": 25.56e6, "vgg19": 143.67e6, "squeezenet": 1.235e6, "bvlc_alexnet": 61.0e6}
# Nodes of a file, and how many of them make weights: counted in the files by their op type.
NODES = {"densenet121": (1746, 836), "resnet50": (415, 239), "squeezenet": (105, 39)}


def test_the_models_are_those_that_the_package_has() -> None:
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    assert sorted(f"light_{m}.onnx" for m in MODELS) == sorted(p.name for p in folder.glob("*.onnx"))


@pytest.mark.parametrize("model", PUBLISHED_MACS)
def test_multiply_adds(model: str) -> None:
    macs = sum(o.flops for o in build(model).ops if o.matmul) / 2
    assert macs == pytest.approx(PUBLISHED_MACS[model], rel=0.02)


@pytest.mark.parametrize("model", PUBLISHED_PARAMETERS)
def test_parameters(model: str) -> None:
    images = 3 * 224 * 224
    floats = sum(t.bytes for t in build(model).tensors if t.persistent) / 4 - images
    assert floats == pytest.approx(PUBLISHED_PARAMETERS[model], rel=0.02)


@pytest.mark.parametrize("model", MODELS)
def test_constants_are_gone(model: str) -> None:
    graph = build(model)
    kinds = Counter(o.kind for o in graph.ops)
    assert not {"Constant", "ConstantOfShape"} & set(kinds)
    assert kinds["Conv"] >= 5
    if model in NODES:
        nodes, weights = NODES[model]
        unsqueezed = 242 if model == "densenet121" else 0  # weights that densenet121 reshapes on the way
        assert len(graph.ops) == nodes - weights - unsqueezed


def test_a_package_without_its_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(onnx, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(OptionError, match=r"carries no light_resnet50\.onnx; install another release"):
        build()
