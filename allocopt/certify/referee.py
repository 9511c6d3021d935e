"""The referee: does a proof file prove what it claims? One file, the standard library, and not a single rounded number.
`python referee.py proof.json` prints what is proven and assumed, and exits with 0 if the claim is proven, else with 1.
Programs: minimise Σ κ_i α_i subject to ||t_j||²_{H^-1} <= ρ_j and l <= α <= u, for H = Σ α_i f_i f_iᵀ. A double is the
rational that it is. Rows are integers over one denominator: neither bound depends on the unit of the rows or of y.
"""
import decimal, json, math, sys
from fractions import Fraction
from typing import Any, NamedTuple

ROUNDING_LEVEL = Fraction(1, 2**40)  # what rounding of the input explains, relative to the terms of a sum
class Refused(ValueError): ...  # the document is malformed or contradicts itself
class Verdict(NamedTuple):
    proven: bool  # the claim; if not, problems says why
    problems: list[str]
    lower: Fraction  # what the allocation and the multipliers prove, whatever is claimed
    upper: Fraction | None  # None: infinity
    assumed: dict[str, Fraction]  # the largest number of each kind that is taken as zero and is not

def judge(document: Any) -> Verdict:
    """What the witness in a proof document proves, and whether that is what the document claims."""
    problems, assumed = list[str](), dict[str, Fraction]()
    def assume(kind, size, what, arm=None):  # may what differs from 0 by this size, relative to its terms, count as 0?
        covered = size <= ROUNDING_LEVEL and any(k == kind and s >= size and arm in (None, *on) for k, on, s in listed)
        if size and covered: assumed[kind] = max(size, assumed.get(kind, size))
        if size and not covered: problems.append(f"{what} (relatively {show(size)}: not assumed, or above 2^-40)")
        return covered or not size
    try:
        need(document["format"] == "allocopt-proof" and whole(document["version"]) == 2, "not a proof of version 2")
        listed = [(a["kind"], a["arms"], Fraction(*map(int, a["size"].split("/")))) for a in document["assumptions"]]
        (lower, upper), claim, tol = bounds(document, assume), document["claim"], number(document["tol"])
        low, high, status = number(claim["lower"]), number(claim["upper"], infinite=True), claim["status"]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = error.args if isinstance(error, Refused) else [f"malformed or missing: {type(error).__name__}: {error}"]
        return Verdict(False, [*problems, *why], Fraction(0), None, {})
    sure = status in ("CERTIFIED", "CONDITIONAL")
    problems += [problem for problem, holds in {
        f"the lower bound {show(low)} is claimed, but {show(lower)} is proven": low <= lower,
        f"the upper bound {show(high)} is claimed, but {show(upper)} is proven": high >= upper,
        f"no status is {status!r}": sure or status in ("INACCURATE", "FAILED"),
        f"the status is {status}, but the claimed gap is above tol": not sure or high <= (1 + tol) * low,
        f"the status is {status} with {len(listed)} assumptions": not sure or (status == "CONDITIONAL") == bool(listed),
    }.items() if not holds]
    return Verdict(not problems, problems, lower, None if upper == math.inf else upper, assumed)

def program(document, assume):  # f, κ, t, ρ, the multipliers λ of the targets, l and u: all from their definition
    described, kind = document["program"], document["program"]["kind"]
    rows = [numbers(row, signed=True) for row in described["features" if kind == "general" else "arms"]]
    k, d = len(rows), len(rows[0])
    rows += [numbers(row, signed=True) for row in described["targets"]] if kind == "general" else []
    need(d > 0 and all(len(row) == d for row in rows), "expected rows of equal length")
    flat, unit = integers([x for row in rows for x in row])
    rows = [flat[n : n + d] for n in range(0, len(flat), d)]
    arms, targets, low, high = rows[:k], rows[k:], [Fraction(0)] * k, [math.inf] * k
    multipliers = numbers(document["multipliers"], len(targets) if kind == "general" else k)
    if kind == "general":
        costs, radii = numbers(described["costs"], k), numbers(described["radii"], len(targets))
        low, high = numbers(described["lower"], k), numbers(described["upper"], k, infinite=True)
        need(min(radii) > 0 and all(low[i] <= high[i] for i in range(k)), "expected radii > 0 and lower <= upper")
        return arms, costs, targets, radii, multipliers, low, high
    need(kind in ("regret", "best_arm", "g_optimal", "horizon", "optimism", "remaining"), f"no program is {kind!r}")
    if kind == "g_optimal": gaps, level = [Fraction(any(arm)) for arm in arms], Fraction(1)
    elif kind == "horizon": gaps, level = numbers(described["gaps"], k), number(described["f_n"])
    else: gaps, level = exact_gaps(described, arms, unit, assume), 2 * number(described["noise_variance"])
    need(level > 0, "f_n and noise_variance must be positive")
    asked, costs = [i for i in range(k) if gaps[i]], [Fraction(1)] * k if kind in ("best_arm", "g_optimal") else gaps
    targets, radii = [arms[i] for i in asked], [gaps[i] ** 2 / level for i in asked]
    if kind == "best_arm":
        best, *others = (arms[i] for i in range(k) if not gaps[i])
        need(all(arm == best for arm in others), "optimal_arms: different arms tie, and cannot be told apart")
        targets = [[x - y for x, y in zip(t, best, strict=True)] for t in targets]
    if kind == "optimism": high = [2 * level * number(described["width"]) / gap**2 if gap else math.inf for gap in gaps]
    if kind == "remaining":
        low = [x / number(described["log_n"]) for x in numbers(described["pulls"], k)]
        need("n" not in described or close(number(described["log_n"]), log(whole(described["n"], 3))), "log_n is wrong")
    return arms, costs, targets, radii, [multipliers[i] for i in asked], low, high

def exact_gaps(described, arms, unit, assume):  # from arms and θ; 0 for the arms that are taken as optimal
    theta, unit_theta = integers(numbers(described["theta"], len(arms[0]), signed=True))
    means, sizes = [dot(row, theta) for row in arms], [dot(map(abs, row), map(abs, theta)) for row in arms]
    top, optimal = means.index(max(means)), indices(described["optimal_arms"], len(arms))
    for i, mean in enumerate(means):
        need(mean < means[top] or i in optimal, f"optimal_arms: arm {i} is optimal too but is not listed")
        size = Fraction(means[top] - mean, sizes[i] + sizes[top] or 1)
        need(i not in optimal or assume("tie", size, f"arm {i} is taken as optimal but its gap is not 0", i))
    return [Fraction(0 if i in optimal else means[top] - mean, unit * unit_theta) for i, mean in enumerate(means)]

def bounds(document, assume):  # the lower and the upper bound that the allocation and the multipliers prove
    rows, costs, targets, radii, multipliers, low, high = program(document, assume)
    k, d, described, quotient = len(rows), len(rows[0]), document["program"], document["quotient"]
    free, alpha = [costs[i] == 0 and high[i] == math.inf for i in range(k)], numbers(document["allocation"], k, True)
    need(free == [x == math.inf for x in alpha], "allocation: it must be infinite on the free arms only")
    alpha = {i: min(max(low[i], alpha[i]), high[i]) for i in range(k) if not free[i]}  # a bound need not be a double
    # Free arms eliminate the pivot columns; the coordinates are kept; the other columns must follow from these.
    pivots, columns = indices(quotient["pivot_arms"], k), indices(quotient["pivot_columns"], d)
    basis, coordinates = indices(quotient["basis_arms"], k), indices(quotient["coordinates"], d)
    need(not {*pivots} & {*alpha} and not {*coordinates} & {*columns}, "the quotient contradicts itself")
    modulo_free, spanned = division([rows[i] for i in pivots], columns), True
    for i in {*range(k)} - {*alpha, *pivots}:
        need(assume("dependence", modulo_free(rows[i], range(d))[1], f"free arm {i} does not depend on pivot_arms"))
    if dropped := {*range(d)} - {*columns, *coordinates}:
        modulo_all = division([rows[i] for i in pivots + basis], columns + coordinates)
        sizes = [modulo_all(row, dropped)[1] for row in targets + [rows[i] for i in alpha if alpha[i]]]
        spanned = assume("dependence", max(sizes, default=0), "targets or played arms do not depend on basis_arms")
    features = {i: modulo_free(rows[i], coordinates)[0] for i in alpha}
    targets = [modulo_free(row, coordinates)[0] for row in targets]
    asked = [j for j, row in enumerate(targets) if any(row)]
    # H is matrix/unit; y_j = adjugate · t_j is a multiple of H^-1 t_j.
    played, unit = integers(alpha.values())
    adjugate, determinant = inverse(gram(played, features.values(), len(coordinates)))
    lower = sum((costs[i] * low[i] for i in alpha), Fraction(0))
    upper = lower if spanned and not asked else math.inf
    if asked and determinant:
        y = {j: [dot(row, targets[j]) for row in adjugate] for j in asked}
        norms = {j: dot(targets[j], y[j]) for j in asked}
        worst = max(Fraction(unit * norms[j], determinant) / radii[j] for j in asked)
        bounded = any(low[i] or high[i] != math.inf for i in alpha)
        if spanned and (worst <= 1 or not bounded):  # without bounds worst · α is feasible
            upper = sum(costs[i] * alpha[i] for i in alpha) * (1 if bounded else worst)
        # For all y_j and w_j, q >= 0 the value is >= q (N²/Λ − Σ l_i p_i) + Σ l_i κ_i − Σ (u_i − l_i)(q p_i − κ_i)_+
        # for N = Σ w_j t_jᵀy_j, Λ = Σ w_j ρ_j, p_i = Σ w_j (f_iᵀy_j)². Take w_j ∝ λ_j/ρ_j; concave in q: climb.
        weights, last = integers([multipliers[j] / radii[j] for j in asked])[0], Fraction(0)
        form, total = gram(weights, y.values(), len(coordinates)), dot(weights, [radii[j] for j in asked])
        prices = {i: dot(f, [dot(row, f) for row in form]) for i, f in features.items()}
        slope = (dot(weights, norms.values()) ** 2 / total if total else 0) - sum(low[i] * prices[i] for i in alpha)
        for q, i in sorted((costs[i] / prices[i], i) for i in alpha if prices[i]):
            lower, last = lower + max(slope, 0) * (q - last), q
            slope = -1 if high[i] == math.inf else slope - (high[i] - low[i]) * prices[i]
    if described["kind"] == "horizon" and "n" in described:
        log_n, rank = log(whole(described["n"], 3)), len(pivots) + len(coordinates)
        level = 2 * log_n + 2 + number(described["constant"]) * rank * log(max(rank, 1) * log_n)
        need(close(number(described["f_n"]), level), "f_n does not follow from n, the constant and the rank")
        lower = lower if spanned and determinant else Fraction(0)  # otherwise that is not proven to be the rank
    return lower, upper

def division(rows, columns):  # eliminates columns by rows: of a row, what is left (times an integer), its relative size
    need(len(rows) == len(columns), "expected as many pivot_arms as columns, and basis_arms as coordinates")
    adjugate, determinant = inverse([[row[c] for c in columns] for row in rows])
    need(determinant, "pivot_arms or basis_arms are dependent in their columns")
    def remainder(row, kept):
        factors = [-dot((row[c] for c in columns), column) for column in zip(*adjugate, strict=True)]
        terms = [[determinant * row[c], *(f * r[c] for f, r in zip(factors, rows, strict=True))] for c in kept]
        return list(map(sum, terms)), max((Fraction(abs(sum(t)), sum(map(abs, t))) for t in terms if sum(t)), default=0)
    return remainder

def inverse(matrix):  # integers A and d with matrix · A = d · identity, without fractions; d = 0 if it is singular
    n, last = len(matrix), 1
    work = [row + [int(i == j) for j in range(n)] for i, row in enumerate(matrix)]
    for c in range(n):
        i = next((i for i in range(c, n) if work[i][c]), None)
        if i is None: return [], 0
        work[c], work[i], p = work[i], work[c], work[i]
        work = [r if r is p else [(p[c] * x - r[c] * y) // last for x, y in zip(r, p, strict=True)] for r in work]
        last = p[c]
    return [row[n:] for row in work], last

def gram(weights, rows, n):  # Σ w r rᵀ, n by n
    return [[sum(w * r[c] * r[e] for w, r in zip(weights, rows, strict=True)) for e in range(n)] for c in range(n)]
def dot(row, other): return sum(x * y for x, y in zip(row, other, strict=True))
def log(x): return Fraction(decimal.Context(prec=50).ln(decimal.Context(prec=50).divide(x.numerator, x.denominator)))
def close(stored, value): return abs(stored - value) <= value / 10**12  # for f_n and log n, which are irrational
def integers(values):  # all of them times their common denominator, and that
    unit = math.lcm(*(x.denominator for x in values))
    return [x.numerator * (unit // x.denominator) for x in values], unit
def need(condition, *otherwise):  # `need(condition, otherwise) or x` is x where the condition holds
    if not condition: raise Refused(*otherwise)
def number(value, infinite=False, signed=False):  # a double as the rational that it is (or math.inf)
    if infinite and value in ("inf", math.inf): return math.inf
    double = isinstance(value, float | Fraction) or (type(value) is int and int(float(value)) == value)
    need(double and (signed or value >= 0), f"expected a double{'' if signed else ' >= 0'}, got {value!s:.40}")
    return Fraction(*value.as_integer_ratio())
def numbers(values, length=None, infinite=False, signed=False):
    need(isinstance(values, list) and length in (None, len(values)), f"expected a list of {length or 'some'} numbers")
    return [number(value, infinite, signed) for value in values]
def whole(x, least=0): return need(type(x) is int and x >= least, f"expected an int >= {least}, got {x!r:.40}") or x
def indices(values, count):
    good = isinstance(values, list) and len({i for i in values if whole(i) < count}) == len(values)
    return need(good, f"expected distinct indices below {count}") or values
def show(x): return repr(float(x)) if x == math.inf or x < 2**1000 else "more than 2^1000"

def read(text: str) -> Any:  # strict JSON: no key twice, no NaN, no Infinity; a literal is the double that it denotes
    def once(pairs): return need(len(dict(pairs)) == len(pairs), f"a key twice: {[k for k, _ in pairs]}") or dict(pairs)
    def double(x): return need(math.isfinite(float(x)), f"{x:.40} is not a finite double") or Fraction(float(x))
    return json.loads(text, object_pairs_hook=once, parse_float=double, parse_constant=double)

def main(path: str) -> int:
    try:
        with open(path, encoding="utf-8-sig") as file: verdict = judge(read(file.read()))
    except (OSError, ValueError, RecursionError) as error:
        verdict = Verdict(False, [f"{path}: {error}"], Fraction(0), None, {})
    print(f"the witness proves [{show(verdict.lower)}, {show(math.inf if verdict.upper is None else verdict.upper)}]")
    for kind, size in verdict.assumed.items(): print(f"assumed: {kind}, relative size {show(size)}")
    print("\n".join(f"not proven: {problem}" for problem in verdict.problems) or "the claim is proven")
    return 0 if verdict.proven else 1

if __name__ == "__main__": sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else "usage: python referee.py proof.json")
