"""Memory: arms in memory, in a file that is mapped, on a cluster."""

from __future__ import annotations

from pathlib import Path

from scaling.common import (
    MAPPED,
    MAPPED_MEGABYTES,
    MEMORY,
    MEMORY_SHARE,
    SAMPLING,
    TOL,
    make_file,
    power,
    say,
    table,
    verdict,
)
from scaling.processes import in_process, solve_file, solve_on_cluster


def section_memory(quick: bool, folder: Path) -> str:
    """Peak memory with the arms in memory."""
    dim, arms = (50, 10**5) if quick else MEMORY
    path = str(folder / "memory.npy")
    in_process(make_file, path, dim, arms, "float64")
    found = in_process(solve_file, path, False)
    beyond = found["peak"]["VmRSS"] - found["before"]["VmRSS"]
    share = beyond / found["arms"]
    say(f"memory at ({dim}, {power(arms)}): {beyond:.0f} MB for {found['arms']:.0f} MB of arms")
    head = ["(d, k)", "arms, MB", "before loading, MB", "peak, MB", "peak − before, MB", "over arms", "at most", ""]
    line = [
        f"({dim}, {power(arms)})", f"{found['arms']:.0f}", f"{found['before']['VmRSS']:.0f}",
        f"{found['peak']['VmRSS']:.0f}", f"{beyond:.0f}", f"{share:.3f}",
        *(("-", "") if quick else (f"{MEMORY_SHARE}", verdict(share <= MEMORY_SHARE))),  # small sets: fixed costs weigh
    ]  # fmt: skip
    return f"""## Memory, arms in memory

VmRSS of /proc/self/status, looked at every {SAMPLING * 1e3:g} ms by a thread, in a new process that loads the arms with
`np.load` from a file made by another one. *Before* is the interpreter with all imports. Certified gap {found["gap"]:.1e}.

{table(head, [line])}
"""


def section_mapped(quick: bool, folder: Path) -> str:
    """Arms in a file, in one process and on a cluster."""
    dim, arms = (16, 10**6) if quick else MAPPED
    path = str(folder / "mapped.npy")
    say(f"making {power(arms)} × {dim} float32")
    in_process(make_file, path, dim, arms, "float32")
    one = in_process(solve_file, path, True)
    anonymous = one["peak"]["RssAnon"]
    say(f"mapped: {one['seconds']:.1f} s, peak RssAnon {anonymous:.0f} MB")
    head = ["k × d", "file, MB", "seconds", "passes", "certified gap", "peak RssAnon, MB", "of it after the imports, MB",
            "peak RssFile, MB", "at most, MB", ""]  # fmt: skip
    line = [
        f"{power(arms)} × {dim}", f"{one['arms']:.0f}", f"{one['seconds']:.1f}", str(one["passes"]), f"{one['gap']:.1e}",
        f"{anonymous:.0f}", f"{anonymous - one['before']['RssAnon']:.0f}", f"{one['peak']['RssFile']:.0f}",
        str(MAPPED_MEGABYTES), verdict(anonymous <= MAPPED_MEGABYTES and one["status"] == "CERTIFIED"),
    ]  # fmt: skip
    say("the same on a cluster of 2 worker processes, then with one of them killed")
    two = in_process(solve_on_cluster, path)
    middle = two["passes_ended"][0] < two["killed"]["at"] < two["passes_ended"][1]
    names = ("one process, mapped", "2 worker processes", "2 worker processes, one killed")
    intervals = (one["interval"], two["interval"], two["hurt_interval"])
    seconds = (one["seconds"], two["seconds"], two["hurt_seconds"])
    statuses = (one["status"], two["status"], two["hurt_status"])
    lines = [
        [name, f"{spent:.1f}", status, f"[{ends[0]!r}, {ends[1]!r}]", "yes" if ends == intervals[0] else "**no**"]
        for name, spent, status, ends in zip(names, seconds, statuses, intervals, strict=True)
    ]
    proofs = [
        [
            name, f"{found['seconds']:.1f}", f"{found['proof']['seconds']:.1f}", f"{found['gap']:.1e}",
            f"{found['proof']['gap']:.1e}", f"[{found['proof']['interval'][0]!r}, {found['proof']['interval'][1]!r}]",
            f"{found['proof']['peak']['RssAnon']:.0f}", str(MAPPED_MEGABYTES),
            verdict(
                found["proof"]["peak"]["RssAnon"] <= MAPPED_MEGABYTES
                and found["proof"]["gap"] <= TOL
                and not found["proof"]["notes"]
            ),
        ]
        for name, found in zip(names, (one, two), strict=False)
    ]  # fmt: skip
    proof_head = ["where", "solve, s", "verify(), s", "gap claimed", "gap proven", "proven interval", "peak RssAnon, MB",
                  "at most, MB", ""]  # fmt: skip
    proper = middle and two["lost"] == 1 and intervals[2] == intervals[0]
    return f"""## Arms in a file that is never loaded

float32, mapped by `np.load(..., mmap_mode="r")` in a new process. RssAnon of /proc/self/status is what is resident beyond the page
cache (RssFile, which the system takes back when it needs it), looked at every {SAMPLING * 1e3:g} ms; imports included.

{table(head, [line])}

The same file as a Dask array (`allocopt.model.arms.dask_npy(path)`, {two["chunks"]} chunks) on
`LocalCluster(n_workers=2, threads_per_worker=1, processes=True)`; then once more, and a worker gets `kill -9` while it prices
its chunks.

{table(["where", "seconds", "status", "interval", "same to the bit"], lines)}

The worker was killed {two["killed"]["at"]:.2f} s after the start, with {two["killed"]["chunks"]} of its chunks under way; the
passes that reported ended at {", ".join(f"{t:.2f}" for t in two["passes_ended"])} s.
Killed in the middle of a pass, finished with the same certificate: {verdict(proper)}.

`solution.verify()` of both, from the file and on the workers: the whole certificate anew, block by block. The memory is that of the
process that asks, while it proves (on a cluster, blocks are in the workers').

{table(proof_head, proofs)}
"""
