"""The error types that users meet. Each message names the file, op or option, what was wrong and what to do."""

from __future__ import annotations


class MschedError(Exception):
    """Base of every error that bad input can cause; the command line prints it without a traceback."""


class FormatError(MschedError):
    """A file could not be read: names the file and the place in it."""


class GraphError(MschedError):
    """An operator graph breaks its contract: names the op or the tensor."""


class DeviceError(MschedError):
    """A device description breaks its contract: names the engine or the key."""


class ProblemError(MschedError):
    """A problem breaks its contract: names the op, the engine or the argument."""


class PlanError(MschedError):
    """A plan does not fit its problem, or carries no schedule to simulate."""


class OptionError(MschedError):
    """An option has a value that nothing understands: names the option and the values that it takes."""


class InternalError(MschedError):
    """Two independent computations of one figure disagree. Never the user's fault; please report it."""
