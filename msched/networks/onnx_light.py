"""The nine image classifiers that the `onnx` package carries for its own tests: real graphs without their weights."""

from __future__ import annotations

from pathlib import Path

from msched.errors import OptionError
from msched.formats import read
from msched.graph import OpGraph
from msched.networks.assembly import one_of

MODELS = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)


def build(model: str = "resnet50") -> OpGraph:
    """The graph of one of `MODELS`, for one image of 224 x 224.

    Raises OptionError: an unknown model, or an onnx package without its test data.
    """
    import onnx

    file = one_of("model", model, {known: f"light_{known}.onnx" for known in MODELS})
    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / file
    if not path.is_file():
        raise OptionError(f"model {model!r}: onnx {onnx.__version__} carries no {file}; install another release of it")
    return read(path)
