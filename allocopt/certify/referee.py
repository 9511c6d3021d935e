"""The referee: does a proof file prove what it claims? One file, the standard library, and not a single rounded number.

    python referee.py proof.json        prints what is proven and assumed; exits with 0 if the claim is proven, else with 1

Programs: minimise Σ κ_i α_i subject to ||t_j||²_{H^-1} <= ρ_j and l <= α <= u, where H = Σ α_i f_i f_iᵀ. A double is the
rational that it is. Rows are integers over one denominator: neither bound depends on the unit of the rows or of y.
"""

import json
import math
import sys
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

ROUNDING_LEVEL = Fraction(1, 2**40)  # what rounding of the input explains, relative to the terms of a sum
LEVEL_TOLERANCE = Fraction(1, 10**12)  # of the stored f_n and log n, which are irrational


class Verdict(NamedTuple):
    proven: bool  # the claim; if not, problems says why
    problems: list[str]
    lower: Fraction  # what the allocation and the multipliers prove, whatever is claimed
    upper: Fraction | None  # None: infinity
    assumed: dict[str, Fraction]  # the largest number of each kind that is taken as zero and is not


class Refused(ValueError):
    """The document is malformed or contradicts itself."""


def judge(document: Any) -> Verdict:
    """What the witness in a proof document proves, and whether that is what the document claims."""
    problems, assumed = list[str](), dict[str, Fraction]()

    def assume(kind: str, size: Fraction, what: str, arm: int | None = None) -> bool:
        """Whether something that differs from zero by this size, relative to its terms, may be taken as zero."""
        covered = any(k == kind and s >= size and (arm is None or arm in arms) for k, arms, s in listed)
        if size and not (covered and size <= ROUNDING_LEVEL):
            problems.append(f"{what} (by {show(size)}, relatively), and no assumption at rounding level covers that")
            return False
        if size:
            assumed[kind] = max(size, assumed.get(kind, size))
        return True

    try:
        need(isinstance(document, dict) and document["format"] == "allocopt-proof", "this is not a proof file")
        need(whole(document["version"]) == 2, f"expected version 2, got {document['version']}")
        listed = [(a["kind"], a["arms"], Fraction(*map(int, a["size"].split("/")))) for a in document["assumptions"]]
        lower, upper = bounds(document, assume)
        claim, tol = document["claim"], number(document["tol"])
        low, high, status = number(claim["lower"]), number(claim["upper"], infinite=True), claim["status"]
    except Refused as reason:
        return Verdict(False, [*problems, *reason.args], Fraction(0), None, {})
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return Verdict(False, [f"malformed or missing: {type(error).__name__}: {error}"], Fraction(0), None, {})
    if low > lower:
        problems.append(f"the lower bound {show(low)} is claimed, but {show(lower)} is proven")
    if high < upper:
        problems.append(f"the upper bound {show(high)} is claimed, but {show(upper)} is proven")
    if status not in ("CERTIFIED", "CONDITIONAL", "INACCURATE", "FAILED"):
        problems.append(f"no status is {status!r}")
    if status in ("CERTIFIED", "CONDITIONAL"):
        if high != low and (high == math.inf or high - low > tol * low):
            problems.append(f"the status is {status}, but the claimed gap is above tol")
        if (status == "CONDITIONAL") != bool(listed):
            problems.append(f"the status is {status} with {len(listed)} assumptions")
    return Verdict(not problems, problems, lower, None if upper == math.inf else upper, assumed)


def program(described: Any, assume: Any) -> tuple[Any, ...]:
    """Features, costs, targets, radii, the place of each target's multiplier, and bounds: all from their definition."""
    kind = described["kind"]
    rows = [numbers(row, signed=True) for row in described["features" if kind == "general" else "arms"]]
    k, d = len(rows), len(rows[0])
    rows += [numbers(row, signed=True) for row in described["targets"]] if kind == "general" else []
    need(d > 0 and all(len(row) == d for row in rows), "expected rows of equal length")
    flat, unit = integers([x for row in rows for x in row])
    whole_rows = [flat[n : n + d] for n in range(0, len(flat), d)]
    arms, targets = whole_rows[:k], whole_rows[k:]
    low, high, ones = [Fraction(0)] * k, [math.inf] * k, [Fraction(1)] * k
    if kind == "general":
        costs, radii = numbers(described["costs"], k), numbers(described["radii"], len(targets))
        low, high = numbers(described["lower"], k), numbers(described["upper"], k, infinite=True)
        need(min(radii) > 0 and all(low[i] <= high[i] for i in range(k)), "expected radii > 0 and lower <= upper")
        return arms, costs, targets, radii, list(range(len(targets))), low, high
    if kind == "g_optimal":
        asked = [i for i in range(k) if any(arms[i])]
        return arms, ones, [arms[i] for i in asked], [ones[i] for i in asked], asked, low, high
    need(kind in ("regret", "best_arm", "optimism", "remaining", "horizon"), f"no kind of program is {kind!r}")
    gaps = numbers(described["gaps"], k) if kind == "horizon" else exact_gaps(described, arms, unit, assume)
    level = number(described["f_n"]) if kind == "horizon" else 2 * number(described["noise_variance"])
    need(level > 0, "f_n and noise_variance must be positive")
    asked, best = [i for i in range(k) if gaps[i]], [arms[i] for i in range(k) if not gaps[i]]
    costs, targets, radii = gaps, [arms[i] for i in asked], [gaps[i] ** 2 / level for i in asked]
    if kind == "best_arm":
        need(all(arm == best[0] for arm in best), "optimal_arms: different arms tie, and cannot be told apart")
        costs, targets = ones, [[x - y for x, y in zip(t, best[0], strict=True)] for t in targets]
    if kind == "optimism":
        high = [2 * level * number(described["width"]) / gap**2 if gap else math.inf for gap in gaps]
    if kind == "remaining":
        log_n = number(described["log_n"])
        need("n" not in described or close(log_n, log(whole(described["n"], 3))), "log_n is not the logarithm of n")
        low = [x / log_n for x in numbers(described["pulls"], k)]
    return arms, costs, targets, radii, asked, low, high


def exact_gaps(described: Any, arms: list[list[int]], unit: int, assume: Any) -> list[Fraction]:
    """Gaps from arms and θ; 0 for the arms that are taken as optimal."""
    theta, unit_theta = integers(numbers(described["theta"], len(arms[0]), signed=True))
    means, sizes = [dot(row, theta) for row in arms], [dot(map(abs, row), map(abs, theta)) for row in arms]
    top, optimal = means.index(max(means)), indices(described["optimal_arms"], len(arms))
    for i, mean in enumerate(means):
        need(mean < means[top] or i in optimal, f"optimal_arms: arm {i} is optimal too but is not listed")
        if mean < means[top] and i in optimal:
            size = Fraction(means[top] - mean, sizes[i] + sizes[top])
            if not assume("tie", size, f"arm {i} is taken as optimal but its gap is not 0", i):
                raise Refused
    return [Fraction(0 if i in optimal else means[top] - mean, unit * unit_theta) for i, mean in enumerate(means)]


def bounds(document: Any, assume: Any) -> tuple[Any, Any]:
    """The lower and the upper bound that the allocation and the multipliers prove."""
    described, quotient = document["program"], document["quotient"]
    rows, costs, asked_rows, radii, places, low, high = program(described, assume)
    k, d = len(rows), len(rows[0])
    free = [i for i in range(k) if costs[i] == 0 and high[i] == math.inf]
    others = [i for i in range(k) if i not in free]
    alpha = numbers(document["allocation"], k, infinite=True)
    need(free == [i for i in range(k) if alpha[i] == math.inf], "allocation: it must be infinite on the free arms only")
    alpha = [min(max(low[i], alpha[i]), high[i]) for i in range(k)]  # a bound need not be a double
    multipliers = numbers(document["multipliers"], len(radii) if described["kind"] == "general" else k)

    # Free arms eliminate the pivot columns; the coordinates are kept; the other columns must follow from these.
    pivots, pivot_columns = indices(quotient["pivot_arms"], k), indices(quotient["pivot_columns"], d)
    basis, coordinates = indices(quotient["basis_arms"], k), indices(quotient["coordinates"], d)
    need(set(pivots) <= set(free) and not set(coordinates) & set(pivot_columns), "the quotient contradicts itself")
    modulo_free, spanned = division([rows[i] for i in pivots], pivot_columns), True
    for i in set(free) - set(pivots):
        if not assume("dependence", modulo_free(rows[i], range(d))[1], f"free arm {i} does not depend on pivot_arms"):
            raise Refused
    dropped = [c for c in range(d) if c not in pivot_columns + coordinates]
    if dropped:
        modulo_all = division([rows[i] for i in pivots + basis], pivot_columns + coordinates)
        used = asked_rows + [rows[i] for i in others if alpha[i]]
        rest = max((modulo_all(row, dropped)[1] for row in used), default=Fraction(0))
        spanned = assume("dependence", rest, "targets or played arms do not depend on pivot_arms and basis_arms")
    features = {i: modulo_free(rows[i], coordinates)[0] for i in others}
    targets = [modulo_free(row, coordinates)[0] for row in asked_rows]
    asked = [j for j, row in enumerate(targets) if any(row)]

    # H is matrix/unit; y_j = adjugate · t_j is a multiple of H^-1 t_j.
    played, unit = integers([alpha[i] for i in others])
    adjugate, determinant = inverse(gram(played, list(features.values()), len(coordinates)))
    lower = sum((costs[i] * low[i] for i in others), Fraction(0))
    upper = lower if spanned and not asked else math.inf
    if asked and determinant:
        y = {j: [dot(row, targets[j]) for row in adjugate] for j in asked}
        worst = max(Fraction(unit * dot(targets[j], y[j]), determinant) / radii[j] for j in asked)
        bounded = any(low[i] or high[i] != math.inf for i in others)
        if spanned and (worst <= 1 or not bounded):  # without bounds worst · α is feasible
            upper = sum(costs[i] * alpha[i] for i in others) * (1 if bounded else worst)

        # For any y_j and w_j, q >= 0 the value is at least q (N²/Λ − Σ l_i p_i) + Σ l_i κ_i − Σ (u_i − l_i)(q p_i − κ_i)_+ where
        # N = Σ w_j t_jᵀy_j, Λ = Σ w_j ρ_j, p_i = Σ w_j (f_iᵀy_j)². Take w_j ∝ λ_j/ρ_j and the best q: concave, piecewise linear.
        on = [j for j in asked if multipliers[places[j]]]
        weights, _ = integers([multipliers[places[j]] / radii[j] for j in on])
        form = gram(weights, [y[j] for j in on], len(coordinates))
        prices = {i: dot(q, [dot(row, q) for row in form]) for i, q in features.items()}
        strength, total = dot(weights, [dot(targets[j], y[j]) for j in on]), dot(weights, [radii[j] for j in on])
        slope = (strength**2 / total if on else 0) - sum(low[i] * p for i, p in prices.items())
        last = Fraction(0)
        for q, i in sorted((costs[i] / p, i) for i, p in prices.items() if p):
            lower, last = lower + max(slope, 0) * (q - last), q
            slope = -1 if high[i] == math.inf else slope - (high[i] - low[i]) * prices[i]
    if described["kind"] == "horizon" and "n" in described:
        log_n, rank = log(whole(described["n"], 3)), len(pivots) + len(coordinates)
        level = 2 * log_n + 2 + number(described["constant"]) * rank * log(max(rank, 1) * log_n)
        need(close(number(described["f_n"]), level), "f_n does not follow from n, the constant and the rank")
        lower = lower if spanned and determinant else Fraction(0)  # otherwise that is not proven to be the rank
    return lower, upper


def division(rows: list[list[int]], columns: list[int]) -> Any:
    """Elimination of columns by rows: of another row, what is left (times an integer) and its largest relative size."""
    need(len(rows) == len(columns), "expected as many pivot_arms as columns, and basis_arms as coordinates")
    adjugate, determinant = inverse([[row[c] for c in columns] for row in rows])
    need(determinant != 0, "pivot_arms or basis_arms are dependent in their columns")

    def remainder(row: list[int], kept: Iterable[int]) -> tuple[list[int], Any]:
        factors = [-dot((row[c] for c in columns), column) for column in zip(*adjugate, strict=True)]
        terms = [[determinant * row[c], *(f * r[c] for f, r in zip(factors, rows, strict=True))] for c in kept]
        rest = [sum(t) for t in terms]
        return rest, max(Fraction(abs(x), sum(map(abs, t)) or 1) for x, t in zip(rest, terms, strict=True)) if any(
            rest
        ) else 0

    return remainder


def inverse(matrix: list[list[int]]) -> tuple[list[list[int]], int]:
    """Integers A and d with matrix · A = d · identity, by elimination without fractions; d = 0 if it is singular."""
    n, last = len(matrix), 1
    work = [row + [int(i == j) for j in range(n)] for i, row in enumerate(matrix)]
    for c in range(n):
        pivot = next((i for i in range(c, n) if work[i][c]), None)
        if pivot is None:
            return [], 0
        work[c], work[pivot] = work[pivot], work[c]
        for i in set(range(n)) - {c}:
            f, g = work[c][c], work[i][c]
            work[i] = [(f * x - g * y) // last for x, y in zip(work[i], work[c], strict=True)]
        last = work[c][c]
    return [row[n:] for row in work], last


def gram(weights: list[int], rows: list[list[int]], size: int) -> list[list[int]]:
    pairs = [(w, row) for w, row in zip(weights, rows, strict=True) if w]
    return [[sum(w * row[c] * row[e] for w, row in pairs) for e in range(size)] for c in range(size)]


def dot(row: Iterable[Any], other: Iterable[Any]) -> Any:
    return sum(x * y for x, y in zip(row, other, strict=True))


def log(x: Any) -> Fraction:
    """log x for x >= 1, to 30 digits: that of a power of two, and 2 atanh((m − 1)/(m + 1)) for what is left, m in [1, 2)."""
    power, total = int(x).bit_length() - 1, 0
    rest = Fraction(x) / 2**power
    for times, z in ((power, Fraction(1, 3)), (1, (rest - 1) / (rest + 1))):
        term = start = int(z * 2**160)
        for odd in range(1, 200, 2):
            total, term = total + 2 * times * term // odd, term * start * start >> 320
    return Fraction(total, 2**160)


def close(stored: Fraction, value: Fraction) -> bool:
    return abs(stored - value) <= LEVEL_TOLERANCE * value


def number(value: Any, infinite: bool = False, signed: bool = False) -> Any:
    """A double as the rational that it is (or math.inf)."""
    if infinite and isinstance(value, str | float) and value in ("inf", math.inf):
        return math.inf
    plain = isinstance(value, int) and not isinstance(value, bool) and int(float(value)) == value
    need(plain or isinstance(value, float | Fraction), f"expected a double, got {value!s:.40}")
    need(signed or value >= 0, f"expected a number >= 0, got {value!s:.40}")
    return Fraction(*value.as_integer_ratio())


def numbers(values: Any, length: int | None = None, infinite: bool = False, signed: bool = False) -> list[Any]:
    need(isinstance(values, list) and length in (None, len(values)), f"expected a list of {length or 'some'} numbers")
    return [number(value, infinite, signed) for value in values]


def integers(values: list[Fraction]) -> tuple[list[int], int]:
    """All of them times their common denominator, and that."""
    unit = math.lcm(*(x.denominator for x in values))
    return [x.numerator * (unit // x.denominator) for x in values], unit


def whole(value: Any, least: int = 0) -> int:
    need(
        isinstance(value, int) and not isinstance(value, bool) and value >= least, f"expected an int, got {value!r:.40}"
    )
    return int(value)


def indices(values: Any, count: int) -> list[int]:
    need(isinstance(values, list) and len({whole(i) for i in values}) == len(values), "expected distinct indices")
    need(max(values, default=0) < count, f"expected indices below {count}")
    return list(values)


def need(condition: bool, otherwise: str) -> None:
    if not condition:
        raise Refused(otherwise)


def show(x: Any) -> str:
    return repr(float(x)) if x == math.inf or x < 2**1000 else "more than 2^1000"


def read(text: str) -> Any:
    """Strict JSON: no key twice, no NaN, no Infinity; literals with a point or an exponent are the doubles they denote."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(pairs)) == len(pairs), f"a key is there twice, among {[key for key, _ in pairs]}")
        return dict(pairs)

    def double(literal: str) -> Fraction:
        need(math.isfinite(float(literal)), f"{literal:.40} is not a finite double")
        return Fraction(float(literal))

    return json.loads(text, object_pairs_hook=once, parse_float=double, parse_constant=double)


def main(path: str) -> int:
    try:
        with open(path, encoding="utf-8-sig") as file:
            verdict = judge(read(file.read()))
    except (OSError, ValueError, RecursionError) as error:
        print(f"not proven: {path}: {error}")
        return 1
    print(f"the witness proves [{show(verdict.lower)}, {show(math.inf if verdict.upper is None else verdict.upper)}]")
    lines = [f"assumed: {kind}, relative size {show(size)}" for kind, size in verdict.assumed.items()]
    lines += [f"not proven: {problem}" for problem in verdict.problems] or ["the claim is proven"]
    print("\n".join(lines))
    return 0 if verdict.proven else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else "usage: python referee.py proof.json")
