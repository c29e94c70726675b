"""Settings of every test: drawn examples are the same on every machine and at every run."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "msched", derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("msched")
