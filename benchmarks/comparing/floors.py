"""The floors: promises, what was measured, and whether they were kept."""

from __future__ import annotations

import math

from comparing.rows import (
    FLOOR_GAP,
    FLOOR_INSTANCES,
    FLOOR_LARGE,
    FLOOR_LARGE_TOL,
    FLOOR_PASSES,
    FLOOR_SPEEDUP,
    LIKE_FOR_LIKE,
    YARDSTICK,
    Floor,
    LargeRow,
    Row,
)


def speed_floor(rows: list[Row]) -> Floor:
    """Is active-set at least 20 times as fast as the fastest peer that is accurate enough?"""
    where = " and ".join(f"({d},{k})" for d, k in FLOOR_INSTANCES)
    promise = (
        f"active-set at least {FLOOR_SPEEDUP:g}x faster than the fastest peer that reaches a true gap of "
        f"{FLOOR_GAP:g} at {where}"
    )
    met: bool | None = True
    parts = []
    for dim, arms in FLOOR_INSTANCES:
        here = [row for row in rows if (row.dim, row.arms) == (dim, arms)]
        if not here:
            return Floor(promise, None, "not part of this run")
        able = [row for row in here if not row.ours and row.true_gap is not None and row.true_gap <= FLOOR_GAP]
        if not able:
            parts.append(f"({dim},{arms}): no peer reached it")
            continue
        fastest = min(able, key=lambda row: row.seconds or math.inf)
        us = next(row for row in here if row.name == YARDSTICK)
        like = next(row for row in here if row.name == LIKE_FOR_LIKE)
        assert fastest.seconds and fastest.ratio and us.true_gap is not None and like.seconds
        met = met and us.true_gap <= FLOOR_GAP and fastest.ratio >= FLOOR_SPEEDUP
        parts.append(
            f"({dim},{arms}): {fastest.ratio:.3g}x against {fastest.name} "
            f"({fastest.seconds / like.seconds:.3g}x with tol 1e-4 for us too)"
        )
    return Floor(promise, met, "; ".join(parts))


def pass_floor(rows: list[LargeRow]) -> Floor:
    """Does active-set certify the largest instance in fewer than 20 pricing passes?"""
    d, k = FLOOR_LARGE
    promise = f"certified {FLOOR_LARGE_TOL:g} at ({d},1e{round(math.log10(k))}) in under {FLOOR_PASSES} pricing passes"
    for row in rows:
        if (row.dim, row.arms) == FLOOR_LARGE:
            met = row.gap <= FLOOR_LARGE_TOL and max(row.passes, row.evaluations) < FLOOR_PASSES
            measured = (
                f"gap {row.gap:.1e} in {row.passes} passes; "
                f"the whole solve takes as long as {row.seconds / row.one_pass:.3g} passes"
            )
            return Floor(promise, met, measured)
    return Floor(promise, None, "not part of this run")
