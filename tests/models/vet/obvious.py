"""
Change point (1) as it is printed: two lines fitted at each split, in O(n^2).
"""

import math

from harness.models.vet.change_point import TOLERANCE


def obvious_change_point(ordered, omega):
    """
    The smallest split that is as good as the best; omega where all units are equal.
    """
    count, mean = len(ordered), math.fsum(ordered) / len(ordered)
    if ordered[-1] == ordered[0]:
        return omega
    errors = {
        split: line_error(ordered[:split]) + line_error(ordered[split:])
        for split in range(omega, count - omega + 1)
    }
    limit = min(errors.values()) + TOLERANCE * math.fsum((unit - mean) ** 2 for unit in ordered)
    return min(split for split, error in errors.items() if error <= limit)


def line_error(units):
    """
    Squared error of the line through *units*.
    """
    count = len(units)
    mean_x, mean_y = (count + 1) / 2, math.fsum(units) / count
    sxx = math.fsum((x - mean_x) ** 2 for x in range(1, count + 1))
    sxy = math.fsum((x - mean_x) * (y - mean_y) for x, y in enumerate(units, start=1))
    syy = math.fsum((y - mean_y) ** 2 for y in units)
    return max(0.0, syy - sxy**2 / sxx) if sxx else 0.0
