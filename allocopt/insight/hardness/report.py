"""The hardness report in words: sections of text and tables.

The command line and the HTML page (`allocopt.insight.hardness.report_page`) show the same sections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from allocopt.base.errors import AllocoptError, InvalidOption
from allocopt.base.validation import Array, positive_number, whole_number
from allocopt.insight.documents import interval
from allocopt.insight.hardness.leave_one_out import Removal
from allocopt.model.bandit import noise_text
from allocopt.model.solution import Solution
from allocopt.model.status_text import assumption_sentences, caveat, confirmed

if TYPE_CHECKING:  # hardness.py itself writes the report
    from allocopt.insight.hardness.hardness import Addition, Hardness

__all__ = ["WIDTHS", "Section", "assumptions_as_json", "checked_widths", "price_row", "printable", "sections"]

WIDTHS = (1.0, 2.0, 4.0)
"""Confidence widths that the report prices by default; 2 is that of sets of probability 1 − 1/n."""

_MOST_ENTRIES = 8  # of a vector that are shown in a table; the JSON document has all


@dataclass(frozen=True)
class Section:
    """A heading, some sentences, and a table if there are columns."""

    title: str
    text: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    left: tuple[int, ...] = ()
    """Columns of words, which are aligned to the left."""
    omitted: int = 0
    """Rows that are not shown."""


def printable(text: str) -> str:
    r"""Text in which control characters and broken Unicode are spelled out.

    Examples
    --------
    >>> print(printable("a bell \x07"))
    a bell \x07
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _number(x: float) -> str:
    return "-" if np.isnan(x) else f"{x:.6g}"


def _signed(x: float) -> str:
    return "-" if np.isnan(x) else f"{x:+.6g}"


def _vector(values: Array) -> str:
    # a zero that is the rounding of a cancellation should look like one
    size = float(np.abs(values).max(initial=0.0))
    shown = [f"{0.0 if abs(x) <= 1e-15 * size else x:.5g}" for x in values[:_MOST_ENTRIES].tolist()]
    return f"({', '.join(shown)}{', …' if len(values) > _MOST_ENTRIES else ''})"


def sections(
    h: Hardness,
    widths: Iterable[float] = WIDTHS,
    additions: Sequence[Addition] = (),
    *,
    most: int = 20,
    prove: bool = True,
) -> Iterator[Section]:
    """The report, section by section, with at most so many rows in each table.

    Examples
    --------
    >>> from allocopt.insight.hardness.hardness import hardness
    >>> from allocopt.insight.instances import counter_example
    >>> [s.title for s in sections(hardness(counter_example(0.01)))][:3]
    ['Summary', 'Informative arms', 'Confusing arms']
    """
    widths, most = checked_widths(widths), whole_number("most", most, least=1)
    names = [] if h.labels is None else ["label"]

    def who(arm: int) -> tuple[str, ...]:
        return (str(arm),) if h.labels is None else (str(arm), printable(h.labels[arm]))

    def table(
        title: str, text: Sequence[str], columns: Sequence[str], rows: list[tuple[str, ...]], words: Sequence[str] = ()
    ) -> Section:
        named = ("arm", *names, *columns)
        left = tuple(i for i, name in enumerate(named) if name in ("label", *words))
        return Section(title, tuple(text), named, tuple(rows[:most]), left, max(0, len(rows) - most))

    yield _summary(h, prove)
    if h.warnings:
        yield Section("Warnings", tuple(printable(text) for text in h.warnings))
    if h.informative:
        yield table(
            "Informative arms",
            ["Played α·log n times although they are bad, for what they tell. Information is leverage: α||x||² in the norm of "
             "H(α)^-1, over the number of dimensions to explore."],
            ["gap", "α", "share of regret", "share of information"],
            [(*who(e.arm), _number(e.gap), _number(e.allocation), f"{e.regret_share:.2%}", f"{e.information_share:.2%}")
             for e in h.informative],
        )  # fmt: skip
    if h.confusing:
        yield table(
            "Confusing arms",
            ["Their constraints are tight: θ' is the parameter hardest to tell from θ among those that make the arm as good as "
             "the best one and leave the optimal means alone. The evidence against it, ½||θ − θ'||² in the norm of H(α), is 1 at "
             "the optimum (over σ²); the last column says which arms bring it."],
            ["gap", "multiplier λ", "share of c", "evidence", "θ'", "told apart by"],
            [(*who(e.arm), _number(e.gap), _number(e.multiplier), f"{e.share:.2%}", f"{a.evidence:.9f}", _vector(a.theta),
              _told_apart_by(h, a.contributions)) for e, a in zip(h.confusing, h.alternatives, strict=True)],
            ["θ'", "told apart by"],
        )  # fmt: skip
    yield table(
        "Without an arm",
        ["c of the remaining arms, certified. Removing an arm that is not listed leaves c as it is."],
        ["role", "c without it", "change", "times c", "remark"],
        [(*who(r.arm), r.role, _number(r.value), _change(h, r.lower, r.upper), _times(r.value, h.constant), printable(_remark(h, r)))
         for r in h.leave_one_out],
        ["role", "remark"],
    )  # fmt: skip
    if additions:
        rows = [
            (_vector(a.vector), _number(a.gap), _number(a.solution.value),
             _change(h, a.solution.lower, a.solution.upper),
             printable("; ".join(part for part in (a.note, caveat(a.solution)) if part))) for a in additions
        ]  # fmt: skip
        yield Section("With one more arm", (), ("arm", "gap", "c with it", "change", "effect"), tuple(rows), (0, 4))
    prices = [price_row(h, width) for width in widths]
    if prices:
        yield Section(
            "Price of optimism",
            ("What any optimistic algorithm with confidence sets ||θ̂ − θ||² <= a σ² log n (in the norm of its data) pays at "
             "least, against c.",),
            ("width a", "optimism pays", "times c", "remark"),
            tuple((f"{p['width']:g}", *(("-", "-") if p["value"] is None else (_number(p["value"]), _number(p["price"]))),
                   p["remark"]) for p in prices), (3,),
        )  # fmt: skip
    yield _sensitivity(h, who, table)
    yield _geometry(h)


def _summary(h: Hardness, prove: bool) -> Section:
    s, g = h.solution, h.geometry
    rows = [("c(A,θ)", f"{s.value:.10g}   (the least regret is c·log n)")]
    if prove:
        rows.append(("proven", interval(h.proven)))
        if not confirmed(s, h.proven):
            rows.append(("", "the proof does not confirm the bounds of the solution"))
    else:
        rows.append(("proven", "left out"))
    granted = assumption_sentences(s, h.proven if prove else None)
    rows += [("" if n else "assuming", printable(sentence)) for n, sentence in enumerate(granted)]
    rows += [
        ("status", f"{s.status.name}, relative gap {s.gap:.2g} (asked: {s.tol:g}), {s.method}"),
        ("UCB pays Σ2σ²/Δ", f"{_number(h.ucb_constant)}   ({f'{h.ucb_ratio:.6g} times c' if h.constant > 0 else 'c is 0'})"),
        ("best-arm time T*", _number(h.best_arm_time) if h.best_arm is not None else "inf   (different arms tie)"),
        ("instance", f"{g.n_arms} arms in {g.dim} dimensions (rank {g.rank}, {g.quotient_rank} to explore), σ² = "
                     f"{noise_text(h.bandit.noise_variance)}"),
        ("best arm" if g.optimal_arms == 1 else "best arms", printable(_listed(h, h.bandit.optimal_arms.tolist()))),
    ]  # fmt: skip
    if h.best_arm is not None and caveat(h.best_arm):
        rows.append(("", f"T* is {caveat(h.best_arm)}"))
    return Section("Summary", (), ("", ""), tuple(rows), (0, 1))


def _sensitivity(h: Hardness, who: Any, table: Any) -> Section:
    said = []
    if h.gradient is None:
        said.append(f"∇_θ c does not exist: {h.sensitivity.note}.")
    else:
        said.append(f"∇_θ c = {_vector(h.gradient)}; ⟨θ, ∇_θ c⟩ = {_number(float(h.bandit.theta @ h.gradient))} = −c.")
        if h.sensitivity.note:
            said.append(f"{h.sensitivity.note[0].upper()}{h.sensitivity.note[1:]}.")
    slope = np.nan_to_num(h.gap_derivatives) * h.bandit.gaps
    moving = np.flatnonzero(slope)
    rows = [
        (*who(i), _number(h.bandit.gaps[i]), _signed(h.gap_derivatives[i]), f"{slope[i] / h.constant:+.4f} %")
        for i in moving[np.argsort(-np.abs(slope[moving]), kind="stable")].tolist()
    ]
    if rows and h.sensitivity.gaps_unique:
        said.append("Gaps that are not listed do not matter to first order.")
    section: Section = table("Sensitivity", said, ["gap", "∂c/∂Δ", "c per 1 % of Δ"], rows)
    return section if rows else Section("Sensitivity", tuple(said))


def _geometry(h: Hardness) -> Section:
    g = h.geometry
    closest = "-" if g.closest_arms is None else f"{g.least_sine:.6g}   ({_listed(h, list(g.closest_arms))})"
    rows = (
        ("gaps", f"smallest {g.gap_min:.6g}, median {g.gap_median:.6g}, largest {g.gap_max:.6g}"),
        ("near ties", f"{g.near_ties} of {g.n_arms - g.optimal_arms} gaps below a thousandth of the largest"),
        ("condition of the arms", f"{g.condition:.4g}   (columns scaled to length 1)"),
        ("smallest sine", f"{printable(closest)}   (between arms that matter, whitened)"),
        ("support", f"informative arms: {len(h.solution.support)} (no more than "
                    f"{g.quotient_rank * (g.quotient_rank + 1) // 2} are ever needed); confusing arms: {len(h.solution.binding)}"),
    )  # fmt: skip
    return Section("Geometry", (), ("", ""), rows, (0, 1))


def _times(value: float, c: float) -> str:
    return f"{value / c:.6g}" if c > 0 else "-"


def _listed(h: Hardness, arms: list[int], most: int = 5) -> str:
    named = [str(i) if h.labels is None else f"{i} {h.labels[i]}" for i in arms[:most]]
    return ", ".join(named) + (f" and {len(arms) - most} more" if len(arms) > most else "")


def _told_apart_by(h: Hardness, contributions: Array) -> str:
    total = float(contributions.sum())
    order = [n for n in np.argsort(-contributions, kind="stable")[:3].tolist() if contributions[n] >= 0.005 * total]
    support = h.solution.support
    names = [str(support[n]) if h.labels is None else h.labels[int(support[n])] for n in order]
    return printable(", ".join(f"{name} {contributions[n] / total:.0%}" for name, n in zip(names, order, strict=True)))


def _change(h: Hardness, lower: float, upper: float) -> str:
    """The change of c, or 0 where the two certified intervals do not tell it from that."""
    apart = lower > h.solution.upper or upper < h.solution.lower
    return _signed(upper - h.constant) if apart else "0"


def _remark(h: Hardness, removed: Removal) -> str:
    if set(removed.optimal_arms) <= set(h.bandit.optimal_arms.tolist()):
        return removed.note
    return f"{removed.note}; best now: {_listed(h, list(removed.optimal_arms))}"


def checked_widths(given: Iterable[float]) -> tuple[float, ...]:
    """Confidence widths, once they are known to be positive numbers."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidOption(f"widths: expected a list of positive numbers, got {given!r}")
    return tuple(positive_number("widths", width) for width in given)


def price_row(h: Hardness, width: float) -> dict[str, Any]:
    """One row of the prices; a width that has none says why."""
    try:
        price = h.price_of_optimism(width)
    except AllocoptError as error:
        nothing: dict[str, Any] = {"value": None, "lower": None, "price": None, "status": None, "assumptions": []}
        return {"width": width, **nothing, "remark": str(error)}
    found = h.optimism(width)
    return {
        "width": width, "value": found.value, "lower": found.lower, "price": price, "status": found.status.name,
        "assumptions": assumptions_as_json(found), "remark": caveat(found),
    }  # fmt: skip


def assumptions_as_json(solution: Solution | None) -> list[dict[str, Any]]:
    """What a solution assumes, for a JSON document."""
    return [] if solution is None else [a.as_json() for a in solution.assumptions]
