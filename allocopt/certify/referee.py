"""The referee: does a proof file prove what it claims? One file, the standard library, and not a single rounded number.
`python referee.py proof.json` prints what is proven and assumed, and exits with 0 if the claim is proven, else with 1.
Programs: minimise Σ κ_i α_i subject to ||t_j||²_{H^-1} <= ρ_j and l <= α <= u, for H = Σ α_i f_i f_iᵀ/σ_i². A double is
the rational that it is. Rows are integers over one denominator: neither bound depends on the unit of the rows or of y."""
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
def program(document, assume):  # f, κ, t, ρ, the multipliers λ of the targets, l, u and σ²: all from their definition
    described, kind = document["program"], document["program"]["kind"]
    by_arm, by_pair = ("regret", "contextual", "optimism", "remaining"), ("best_arm", "top_m", "transductive", "duelling")
    need(kind in (*by_arm, *by_pair, "threshold", "horizon", "g_optimal", "general"), f"no program is {kind!r}")
    names = {"general": ["features", "targets"], "transductive": ["arms", "items"]}.get(kind, ["arms"])
    rows = [numbers(row, signed=True) for name in names for row in described[name]]
    k, d = len(described[names[0]]), len(rows[0])
    need(d > 0 and all(len(row) == d for row in rows), "expected rows of equal length")
    flat, unit = integers([x for row in rows for x in row])
    rows = [flat[n : n + d] for n in range(0, len(flat), d)]
    duels = [(i, j) for i in range(k) for j in range(i + 1, k) if kind == "duelling" and rows[i] != rows[j]]
    arms, targets = [minus(rows[i], rows[j]) for i, j in duels] or rows[:k], rows[k:] if len(names) == 2 else rows
    k, places, level, noise = len(arms), [*range(len(targets))], Fraction(2), described.get("noise_variance", 1)
    low, high, costs = [Fraction(0)] * k, [math.inf] * k, [Fraction(1)] * k
    if kind == "general":
        low, high = numbers(described["lower"], k), numbers(described["upper"], k, infinite=True)
        costs, radii = numbers(described["costs"], k), numbers(described["radii"], len(targets))
        need(min(radii) > 0 and all(low[i] <= high[i] for i in range(k)), "expected radii > 0 and lower <= upper")
    elif kind == "horizon": noise, gaps, level = 1, numbers(described["gaps"], k), number(described["f_n"])
    elif kind == "g_optimal": noise, gaps, level = 1, [Fraction(any(arm)) for arm in arms], Fraction(1)
    else:  # means ⟨x, θ⟩, their sizes Σ|x_c θ_c|, and the arms from the best one to the worst
        noise, (theta, scale) = described["noise_variance"], integers(numbers(described["theta"], d, signed=True))
        means, sizes = ([Fraction(dot(map(f, x), map(f, theta)), unit * scale) for x in targets] for f in (int, abs))
        order = sorted(places, key=lambda i: (-means[i], i))
    if kind in by_pair:  # x_j − x_i for the answers i and all others j
        top, epsilon = order[: whole(described["m"], 1) if kind == "top_m" else 1], Fraction(0)
        if kind == "best_arm": top, epsilon = [whole(described.get("answer", top[0]))], number(described.get("epsilon", 0))
        pairs = [(i, j) for i in sorted(top) for j in places if j not in top and targets[i] != targets[j]]
        places = [j for _, j in pairs] if kind == "best_arm" else [*range(len(pairs))]
        gaps, targets = [means[i] - means[j] + epsilon for i, j in pairs], [minus(targets[j], targets[i]) for i, j in pairs]
        need(gaps and min(gaps) > 0, "different arms tie and cannot be told apart, or the answer is wrong")
        radii, costs = [gap**2 / 2 for gap in gaps], [means[order[0]] - (means[i] + means[j]) / 2 for i, j in duels] or costs
    elif kind != "general":
        if kind == "threshold": gaps = [abs(mean - number(described["tau"], signed=True)) for mean in means]
        if kind in by_arm: gaps = exact_gaps(described, means, sizes, described["contexts"] if kind == "contextual" else [k], assume)
        need(level > 0 and (kind != "threshold" or all(gaps)), "f_n must be positive, and tau not the mean of an arm")
        costs, places = costs if kind in ("g_optimal", "threshold") else gaps, [i for i in places if gaps[i]]
        targets, radii = [arms[i] for i in places], [gaps[i] ** 2 / level for i in places]
    noise = [need(v > 0, "noise_variance must be positive") or v for v in numbers(noise if type(noise) is list else [noise] * k, k)]
    if kind == "optimism": high = [4 * number(described["width"]) * noise[i] / g**2 if g else math.inf for i, g in enumerate(gaps)]
    if kind == "remaining": low = [x / number(described["log_n"]) for x in numbers(described["pulls"], k)]
    if kind == "remaining" and "n" in described: need(close(number(described["log_n"]), log(whole(described["n"], 3))), "wrong log_n")
    multipliers = numbers(document["multipliers"], len(targets) if kind in ("general", *by_pair[1:]) else k)
    return arms, costs, targets, radii, [multipliers[i] for i in places], low, high, noise
def exact_gaps(described, means, sizes, contexts, assume):  # within contexts; 0 for the arms that are taken as optimal
    gaps, optimal = list[Fraction](), indices(described["optimal_arms"], len(means))
    for context in (range(len(gaps), len(gaps) + whole(count, 1)) for count in contexts):
        top = max(context, key=lambda i: means[i])
        gaps += [means[top] - means[i] for i in context]
        for i in context:
            need(gaps[i] or i in optimal, f"optimal_arms: arm {i} is optimal too but is not listed")
            size = gaps[i] / (sizes[i] + sizes[top] or 1)
            need(i not in optimal or assume("tie", size, f"arm {i} is taken as optimal but its gap is not 0", i))
    good = need(len(gaps) == len(means), "contexts: they do not add up to the arms")
    return good or [Fraction(0) if i in optimal else gap for i, gap in enumerate(gaps)]
def bounds(document, assume):  # the lower and the upper bound that the allocation and the multipliers prove
    rows, costs, targets, radii, multipliers, low, high, noise = program(document, assume)
    costs = [cost * v for cost, v in zip(costs, noise, strict=True)]  # in β = α/σ², so that H = Σ β_i f_i f_iᵀ
    low, high = ([x / v for x, v in zip(bound, noise, strict=True)] for bound in (low, high))
    k, d, described, quotient = len(rows), len(rows[0]), document["program"], document["quotient"]
    free, alpha = [costs[i] == 0 and high[i] == math.inf for i in range(k)], numbers(document["allocation"], k, True)
    need(free == [x == math.inf for x in alpha], "allocation: it must be infinite on the free arms only")
    alpha = {i: min(max(low[i], alpha[i] / noise[i]), high[i]) for i in range(k) if not free[i]}  # a bound need not be a double
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
    played, unit = integers(alpha.values())  # H is matrix/unit; y_j = adjugate · t_j is a multiple of H^-1 t_j
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
def gram(by, rows, n): return [[sum(w * r[c] * r[e] for w, r in zip(by, rows, strict=True)) for e in range(n)] for c in range(n)]
def minus(row, other): return [x - y for x, y in zip(row, other, strict=True)]
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
    wanted = f"expected a double{'' if signed else ' >= 0'}, got {value!s:.40}"
    return need(double and (signed or value >= 0), wanted) or Fraction(*value.as_integer_ratio())
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
