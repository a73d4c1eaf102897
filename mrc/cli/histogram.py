# SPDX-License-Identifier: BSD-2-Clause
"""Latency histogram of constant size: exact minimum and maximum, percentiles within 1.6 %."""

_SUB_BITS = 6
_SUB = 1 << _SUB_BITS
_OCTAVES = 40


def _bucket(ns: int) -> int:
    """Values below 128 ns have a bucket each; above, every power of two has 64."""
    shift = max(0, ns.bit_length() - _SUB_BITS - 1)
    return min((shift << _SUB_BITS) + (ns >> shift), (_OCTAVES << _SUB_BITS) - 1)


def _bucket_middle(index: int) -> float:
    shift = max(0, (index >> _SUB_BITS) - 1)
    low = (index - (shift << _SUB_BITS)) << shift
    return low + ((1 << shift) - 1) / 2


class LatencyHistogram:
    """Counts of latencies in nanoseconds."""

    def __init__(self) -> None:
        self._counts = [0] * (_OCTAVES << _SUB_BITS)
        self.count = 0
        self.sum_ns = 0
        self.min_ns = 0
        self.max_ns = 0

    def add(self, ns: int) -> None:
        """Count one latency; negative values are an error of the caller's clock."""
        if ns < 0:
            raise ValueError("negative latency")
        self._counts[_bucket(ns)] += 1
        self.min_ns = ns if self.count == 0 else min(self.min_ns, ns)
        self.max_ns = max(self.max_ns, ns)
        self.count += 1
        self.sum_ns += ns

    def merge(self, other: "LatencyHistogram") -> None:
        """Add everything `other` has counted."""
        if other.count == 0:
            return
        self.min_ns = other.min_ns if self.count == 0 else min(self.min_ns, other.min_ns)
        self.max_ns = max(self.max_ns, other.max_ns)
        self.count += other.count
        self.sum_ns += other.sum_ns
        for index, n in enumerate(other._counts):  # noqa: SLF001 - of our own kind
            self._counts[index] += n

    def percentile_ns(self, ratio: float) -> float:
        """The smallest latency that at least `ratio` (0..1) of the samples do not exceed."""
        if self.count == 0:
            return 0.0
        wanted = max(1, -int(-ratio * self.count // 1))
        seen = 0
        for index, n in enumerate(self._counts):
            seen += n
            if seen >= wanted:
                return min(max(_bucket_middle(index), self.min_ns), self.max_ns)
        return float(self.max_ns)

    def as_json(self) -> dict[str, float | int]:
        """Microseconds, the keys of `end.latency_us`."""

        def us(ns: float) -> float:
            return round(ns / 1000, 3)

        return {
            "min": us(self.min_ns),
            "p50": us(self.percentile_ns(0.50)),
            "p99": us(self.percentile_ns(0.99)),
            "p999": us(self.percentile_ns(0.999)),
            "max": us(self.max_ns),
            "mean": us(self.sum_ns / self.count) if self.count else 0.0,
            "samples": self.count,
        }
