"""
The network's rate of a node, by ``tc``: a token bucket at each end of its link.

What a node sends is held at its own end, what it receives at the other end of its link.  A bucket
holds what is sent at once; what does not fit waits 50 ms at most.
"""

from __future__ import annotations

_LEAST_BURST, _LATENCY = 32 * 1024, "50ms"
_TICKS_PER_S = 250  # a bucket must hold what passes between two ticks of the kernel's clock


def shape_argv(device: str, bytes_per_s: float) -> list[str]:
    """
    Command that holds what leaves through *device* to a rate; it replaces an earlier one.

    >>> " ".join(shape_argv("eth0", 12_500_000))
    'tc qdisc replace dev eth0 root tbf rate 100000000bit burst 50000b latency 50ms'
    """
    rate = max(1, round(8 * bytes_per_s))
    burst = max(_LEAST_BURST, round(bytes_per_s / _TICKS_PER_S))
    bucket = ["tbf", "rate", f"{rate}bit", "burst", f"{burst}b", "latency", _LATENCY]
    return ["tc", "qdisc", "replace", "dev", device, "root", *bucket]
