"""Placement: the kind of an op -> the class of its work -> the engines that it holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Literal, NamedTuple, get_args

from msched.device import Device
from msched.errors import OptionError, ProblemError
from msched.graph import Op

Work = Literal["matrix", "vector", "attention", "control", "host", "image", "collective", "copy", "free"]
Override = Mapping[str, str | Mapping[str, int]]
WORKS: tuple[Work, ...] = get_args(Work)

# Op types of ONNX, GE and the Ascend profilers, opcodes of XLA, layers of torch.nn, in the spelling of `plain`.
_KINDS: dict[Work, str] = {
    "matrix": """
        conv convolution convinteger qlinearconv convtranspose deconvolution deformconv deformableconv causalconv
        depthwiseconv convbackpropfilter convbackpropinput causalconvwithstate gemm mm bmm addmm baddbmm linear dense
        fullyconnection innerproduct einsum dot dotgeneral bilinear rnn lstm gru lstmcell grucell rnncell dynamicrnn
        dynamicgru emubidirlstm classifier projection""",
    "attention": "sdpa flashattn mha ringattn",
    "vector": """
        abs acos acosh adagrad adam adamw add addn addcmul addcdiv affinegrid and argmax argmin asin asinh atan atanh
        averagepool avgpool adaptiveavgpool adaptivemaxpool batchnorm batchnormalization batchnorminference
        batchnormtraining bias biasadd bitwiseand bitwisenot bitwiseor bitwisexor blackmanwindow bninference bninfer
        bntrainingreduce bntrainingupdate broadcast broadcastindim broadcastto cast castlike ceil celu centercroppad
        channelshuffle clamp clip clone cos cosh col2im compare concat concatd concatenate convert copysign crossentropy
        crossentropyloss cumprod cumsum deformablepsroialign depthtospace dequantizelinear dequantize ascenddequant
        ascendquant ascendantiquant det dft div divide dropoutdomask dropoutgenmask dsagenbitmask dsastatelessgenbitmask
        dynamicquant dynamicquantizelinear dynamicslice dynamicupdateslice elementwise elu embedding embeddingbag equal
        erf exp expand expm exponential eyelike fill floor floordiv fma foreachaddlist foreachmulscalar
        fractionalmaxpool fusion gather gatherelements gathernd geglu gelu fastgelu globalaveragepool globallppool
        globalmaxpool greater greaterequal greaterorequal gridsample groupnorm groupnormalization hammingwindow
        hannwindow hardmax hardsigmoid hardswish hardtanh indexadd indexput indexselect inplaceadd inplaceupdate
        instancenorm instancenormalization iota isfinite isinf isnan l2loss l2normalize lamb layernorm
        layernormalization leakyrelu less lessequal lessorequal log logicaland logicalnot logicalor logicalxor logistic
        logsoftmax logsumexp lpnormalization lppool lrn map maskedfill matrixbandpart max maximum maxpool
        maxpoolwithargmax maxpoolgradwithargmax maxroipool maxunpool mean meanvariancenormalization melweightmatrix
        memset min minimum mish mod momentum applymomentum applyadam mul muls multiply mulscalar ne neg negate
        negativeloglikelihoodloss nllloss nonzero norm normal normalize not notequal onehot oneslike or pack pad padv
        permute pixelshuffle pixelunshuffle pow power prelu quantize quantizelinear qlinearadd randomnormal
        randomnormallike randomuniform randomuniformlike bernoulli multinomial statelessrandom rng realdiv reciprocal
        reduce reduceall reduceany reducel1 reducel2 reducelogsum reducelogsumexp reducemax reducemean reducemin
        reduceprod reducesum reducesumd reducesumsquare reducewindow relu relu6 remainder repeat reverse reversesequence
        rms rmsnorm rmsnormalization addrmsnorm addlayernorm roialign rope rotarymul rotaryembedding
        applyrotaryposemb rotarypositionembedding round route router rsqrt scale scan scatter scatterelements scatternd
        scatterupdate select selectandscatter selectv selu sgd sgdupdate shrink sigmoid sign silu sin sinh slice
        sliced softmax softmaxcrossentropyloss softmaxcrossentropywithlogits softplus softsign sort spacetodepth split
        splitd splitv sqrt square stft stack strideslice stridedslice strideslicegrad sub subtract sum swiglu swish
        tan tanh tensormove tensorscatter thresholdedrelu tile topk transdata transpose transposed tril triu trilu
        unpack unstack unfold fold upsample interpolate weightnorm where while xor zeroslike combine dispatch
        moeinitrouting moegatingtopk moegatingtopksoftmax moefinalizerouting moedispatch moecombine""",
    "control": """
        shape shapen size rank range if loop case enter exit merge switch nextiteration loopcond conditional call
        customcall streamswitch streamactive streammerge labelset labelgoto labelswitch assert print getnext
        dynamicgetnext iterator queuedequeue unique uniquewithcounts nonmaxsuppression compress stringconcat
        stringnormalizer stringsplit regexfullmatch tfidfvectorizer categorymapper labelencoder dictvectorizer
        featurevectorizer onehotencoder arrayfeatureextractor binarizer imputer normalizer scaler zipmap castmap
        svmclassifier svmregressor linearclassifier linearregressor treeensemble treeensembleclassifier
        treeensembleregressor optional optionalgetelement optionalhaselement sequenceat sequenceconstruct sequenceempty
        sequenceerase sequenceinsert sequencelength sequencemap splittosequence concatfromsequence partitionedcall""",
    # look-ups in the memory of the host, which no operator of ONNX or GE has
    "host": "hostembeddingbag",
    "image": """
        imagedecoder decodeimage decodejpeg decodepng decodebmp decodegif decodeandcropjpeg decodevideo encodejpeg jpegd
        jpege pngd vdec venc vpc resize resizebilinear resizenearestneighbor resizebicubic resizearea cropandresize
        randomresizedcrop imageprojectivetransform warpaffine yuvtorgb""",
    "collective": """
        allreduce allgather allgatherintotensor reducescatter reducescattertensor alltoall alltoallv send recv receive
        sendrecv collectivepermute ppermute barrier""",
    "copy": "memcpy memcpyasync memcpyhtod memcpydtoh memcpydtod memcpyptop copy copystart copydone prefetch offload",
    "free": """
        reshape squeeze unsqueeze flatten unflatten identity identityn expanddims view viewas alias detach bitcast
        reinterpretcast getitem gettupleelement tuple dropout alphadropout featuredropout noop pass stopgradient
        preventgradient netoutput output return constant constantofshape const fileconstant constplaceholder input
        parameter placeholder data refdata variable variablev aippdata anndata hidden""",
}  # fmt: skip
_WORK_OF = {kind: work for work, kinds in _KINDS.items() for kind in kinds.split()}
_FRAGMENTS: tuple[tuple[str, Work], ...] = (
    ("attention", "attention"), ("matmul", "matrix"), ("allreduce", "collective"), ("allgather", "collective"),
    ("reducescatter", "collective"), ("alltoall", "collective"),
)  # fmt: skip
_LIBRARY = re.compile(r"^(hcom|hccl|horovod|nccl)")
_VERSION = re.compile(r"(V|_v)\d+D?$")
_MARKS = (r"[123]d", r"grad$", r"d$", r"\d+$")


class Place(NamedTuple):
    """Where an op runs: its class of work, and (engine, units of it that one block takes), the binding one first."""

    work: Work
    needs: tuple[tuple[str, int], ...]


@cache
def plain(kind: str) -> str:
    """A kind in lower case, letters and digits only: `hcom_allReduce_` becomes `hcomallreduce`."""
    return re.sub(r"[^a-z0-9]", "", kind.lower())


@cache
def work_of(kind: str) -> Work | None:
    """The class of work of a kind, or None where no table knows it.

    Looked up as spelt but for case and punctuation, and without the marks of versions, dimensions and gradients
    (`MatMulV2`, `Conv2DBackpropInput`, `ReluGrad`); then so for each dotted part, the last first (`com.microsoft.Gelu`,
    `aten.mm.default`); then by what its name contains.
    """
    for name in (kind, *reversed(kind.split("."))):
        for spelling in _spellings(name):
            if spelling in _WORK_OF:
                return _WORK_OF[spelling]
    if _LIBRARY.match(name := plain(kind)):
        return "collective"
    return next((work for fragment, work in _FRAGMENTS if fragment in name), None)


def places(ops: Iterable[Op], device: Device, overrides: Override) -> tuple[list[Place], list[str]]:
    """The place of each op, and a warning for each assumption.

    The strongest of these decides: `overrides` (an exact kind to a class of work, or to {engine: units a block}); the
    engine that the op records, where the device has it; the table of kinds; and for a kind that is in none, vector
    work. An op with `participants` and no `matmul` is a collective, whatever its kind. What was measured to take
    time is not free because of its kind: it is vector work, as the copy that a view becomes.

    Raises OptionError for an override that the device cannot follow, ProblemError for a class that it has no place for.
    """
    if not isinstance(overrides, Mapping):
        raise OptionError(f"placement is {overrides!r}; a mapping of kinds to classes of work or engines is needed")
    chosen = {kind: _override(kind, value, device) for kind, value in overrides.items()}
    memory: dict[tuple[str, str | None, bool, bool], Place] = {}
    result: list[Place] = []
    kinds: Counter[str] = Counter()
    strangers: Counter[str] = Counter()
    for op in ops:
        key = (op.kind, op.engine, op.participants > 0 and op.matmul is None, bool(op.duration_ns))
        if key not in memory:
            memory[key] = chosen.get(op.kind) or _place(op, device)
        result.append(memory[key])
        kinds[op.kind] += 1
        if op.engine is not None and op.engine not in device.engines:
            strangers[op.engine] += 1
    warnings = [f"placement: no op is of kind {kind!r}" for kind in chosen if kind not in kinds]
    for name, count in strangers.items():
        warnings.append(f"{count} ops record engine {name!r}, which {device.name!r} has not: placed by their kind")
    for kind, engine, collective, _ in memory:
        if work_of(kind) is None and not (kind in chosen or engine in device.engines or collective):
            warnings.append(
                f"kind {kind!r} ({kinds[kind]} ops) is in no table: taken for vector work; "
                f"placement={{{kind!r}: ...}} says otherwise"
            )
    return result, list(dict.fromkeys(warnings))


def _spellings(kind: str) -> Iterable[str]:
    yield plain(kind)
    name = plain(_VERSION.sub("", kind))
    yield name
    for mark in _MARKS:
        name = re.sub(mark, "", name) or name
        yield name


def _place(op: Op, device: Device) -> Place:
    work = work_of(op.kind)
    if op.participants > 0 and op.matmul is None:
        work = "collective"
    recorded = op.engine if op.engine in device.engines else None
    if work is None:
        work = "collective" if recorded is not None and device.engines[recorded].communication else "vector"
    if work == "free" and not op.duration_ns:
        return Place(work, ())
    if work == "free":
        work = "vector"
    needs = _needs(work, device)
    if recorded is not None:
        needs = {recorded: needs[recorded], **needs} if recorded in needs else {recorded: 1}
    if not needs:
        raise ProblemError(
            f"op {op.name!r} ({op.kind}) is {work} work, and device {device.name!r} has no place for it; "
            f"add {work!r} to the placement of the device, or name an engine in placement={{{op.kind!r}: ...}}"
        )
    return Place(work, tuple(needs.items()))


def _needs(work: Work, device: Device) -> Mapping[str, int]:
    """The engines of a class of work, none where it has no place; what touches the host is control work by default."""
    return device.placement.get(work) or (device.placement.get("control", {}) if work == "host" else {})


def _override(kind: str, value: str | Mapping[str, int], device: Device) -> Place:
    where = f"placement of {kind!r} on device {device.name!r}"
    if isinstance(value, str):
        work = next((work for work in WORKS if work == value), None)
        if work is None:
            raise OptionError(f"{where}: {value!r} is no class of work; there are: {', '.join(WORKS)}")
        needs = {} if work == "free" else _needs(work, device)
        if work != "free" and not needs:
            raise OptionError(f"{where}: the device has no place for {value!r} work")
        return Place(work, tuple(needs.items()))
    if not isinstance(value, Mapping) or not value:
        raise OptionError(f"{where}: a class of work or {{engine: units a block}} is needed, not {value!r}")
    for engine, units in value.items():
        if engine not in device.engines:
            raise OptionError(f"{where}: no engine {engine!r}; there are: {', '.join(device.engines)}")
        if type(units) is not int or not 1 <= units <= device.engines[engine].units:
            most = device.engines[engine].units
            raise OptionError(f"{where}: {units!r} units of {engine!r}; a whole number from 1 to {most} is needed")
    work = work_of(kind)
    return Place("vector" if work in (None, "free") else work, tuple(value.items()))
