"""The referee: does a proof file prove what it claims? One file, the standard library, and not a single rounded number.
`python referee.py proof.json` prints what is proven and assumed, and exits with 0 if the claim is proven, else with 1.
Programs: minimise Σ κ_i α_i for ||t_j||²_{H^-1} <= ρ_j, l <= α <= u, Bα <= b; H = Σ α_i Σ f fᵀ/σ_f² over the rows f that i shows."""
import decimal, json, math, sys
from fractions import Fraction
from typing import Any, NamedTuple
ROUNDING_LEVEL = Fraction(1, 2**40)  # what rounding of the input explains, relative to the terms of a sum
class Refused(ValueError): ...  # the document is malformed or contradicts itself
class Verdict(NamedTuple): proven: bool; problems: list[str]; lower: Fraction; upper: Fraction | None; assumed: dict[str, Fraction]
def judge(document: Any) -> Verdict:
    """What the witness in a proof document proves (None: ∞; assumed: the largest of each kind), and is that what is claimed?"""
    problems, assumed = list[str](), dict[str, Fraction]()
    def assume(kind, size, what, arm=None):  # may what differs from 0 by this size, relative to its terms, count as 0?
        covered = size <= ROUNDING_LEVEL and any(k == kind and s >= size and arm in (None, *on) for k, on, s in listed)
        if size and covered: assumed[kind] = max(size, assumed.get(kind, size))
        if size and not covered: problems.append(f"{what} (relatively {show(size)}: not assumed, or above 2^-40)")
        return covered or not size
    try:
        need(document["format"] == "allocopt-proof" and whole(document["version"]) in (2, 3, 4), "not a proof of version 2 to 4")
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
def program(document, assume):  # rows, their arms and σ²; κ, l, u, t, ρ and the multipliers λ of the targets: from the definition
    described, kind = document["program"], document["program"]["kind"]
    by_arm = ("regret", "contextual", "optimism", "remaining", "semi_bandit")
    by_pair = ("best_arm", "side_observations", "top_m", "transductive", "duelling")
    need(kind in (*by_arm, *by_pair, "threshold", "horizon", "g_optimal", "general"), f"no program is {kind!r}")
    names = {"general": ["features", "targets"], "transductive": ["arms", "items"]}.get(kind, ["arms"])
    if kind == "side_observations": described = {**described, "arms": ones(len(described["means"])), "theta": described["means"]}
    given = [[arm if kind == "general" and type(arm[0]) is list else [arm] for arm in described[name]] for name in names]
    owners, rows = [i for i, f in enumerate(given[0]) for _ in f], [numbers(x, signed=True) for a in given for f in a for x in f]
    k, d = len(owners), len(rows[0]); need(d > 0 and all(len(row) == d for row in rows), "expected rows of equal length")
    flat, unit = integers([x for row in rows for x in row])
    rows = [flat[n : n + d] for n in range(0, len(flat), d)]
    duels = [(i, j) for i in range(k) for j in range(i + 1, k) if kind == "duelling" and rows[i] != rows[j]]
    owners = [*range(len(duels))] or owners
    arms, targets = [minus(rows[i], rows[j]) for i, j in duels] or rows[:k], rows[k:] if len(names) == 2 else rows
    if kind in ("semi_bandit", "side_observations"):  # an arm shows some coordinates, e.g. those that it uses; if none, a row of zeros
        shown = described["shown"] if kind == "side_observations" else [[c for c in range(d) if x[c]] for x in rows]
        owners = [i for i, own in zip(range(k), shown, strict=True) for _ in own or [d]]
        arms = [[unit * (c == e) for c in range(d)] for own in shown for e in indices(own, d) or [d]]
    k, n, places, level = owners[-1] + 1, len(arms), [*range(len(targets))], Fraction(2)
    low, high, costs, noise = [Fraction(0)] * k, [math.inf] * k, [Fraction(1)] * k, described.get("noise_variance", 1)
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
        places = [j for _, j in pairs] if kind in by_pair[:2] else [*range(len(pairs))]
        gaps, targets = [means[i] - means[j] + epsilon for i, j in pairs], [minus(targets[j], targets[i]) for i, j in pairs]
        need(gaps and min(gaps) > 0, "different arms tie and cannot be told apart, or the answer is wrong")
        if kind == "side_observations": duels = [(i, i) for i in range(k)]  # an arm costs its gap, a duel the mean of two
        radii, costs = [gap**2 / 2 for gap in gaps], [means[order[0]] - (means[i] + means[j]) / 2 for i, j in duels] or costs
    elif kind != "general":
        if kind == "threshold": gaps = [abs(mean - number(described["tau"], signed=True)) for mean in means]
        if kind in by_arm: gaps = exact_gaps(described, means, sizes, described["contexts"] if kind == "contextual" else [k], assume)
        need(level > 0 and (kind != "threshold" or all(gaps)), "f_n must be positive, and tau not the mean of an arm")
        costs, places = costs if kind in ("g_optimal", "threshold") else gaps, [i for i in places if gaps[i]]
        best = rows[gaps.index(0)] if kind == "semi_bandit" else [0] * d
        targets, radii = [minus(rows[i], best) for i in places], [gaps[i] ** 2 / level for i in places]
    noise = [need(v > 0, "noise_variance must be positive") or v for v in numbers(noise if type(noise) is list else [noise] * n, n)]
    if kind == "optimism": high = [4 * number(described["width"]) * noise[i] / g**2 if g else math.inf for i, g in enumerate(gaps)]
    if kind == "remaining": low = [x / number(described["log_n"]) for x in numbers(described["pulls"], k)]
    if kind == "remaining" and "n" in described: need(close(number(described["log_n"]), log(whole(described["n"], 3))), "wrong log_n")
    multipliers = numbers(document["multipliers"], len(targets) if kind in ("general", *by_pair[2:]) else k)
    return arms, owners, noise, costs, low, high, targets, radii, [multipliers[i] for i in places]
def exact_gaps(described, means, sizes, contexts, assume):  # within contexts; 0 for the arms that are taken as optimal
    gaps, optimal = list[Fraction](), indices(described["optimal_arms"], len(means))
    for context in (range(len(gaps), len(gaps) + whole(count, 1)) for count in contexts):
        top = max(context, key=lambda i: means[i]); gaps += [means[top] - means[i] for i in context]
        for i in context:
            need(gaps[i] or i in optimal, f"optimal_arms: arm {i} is optimal too but is not listed")
            need(i not in optimal or assume("tie", gaps[i] / (sizes[i] + sizes[top] or 1), f"arm {i} is taken as optimal", i))
    need(len(gaps) == len(means), "contexts: they do not add up to the arms")
    return [Fraction(0) if i in optimal else gap for i, gap in enumerate(gaps)]
def bounds(document, assume):  # the lower and the upper bound that the allocation and the multipliers prove
    rows, owners, noise, costs, low, high, targets, radii, multipliers = program(document, assume)
    k, d, described, quotient = len(costs), len(rows[0]), document["program"], document["quotient"]
    (limits, charges, rent), alpha = linear_constraints(document, costs, high), numbers(document["allocation"], k, True)
    free = [costs[i] == 0 and high[i] == math.inf and not any(i in row for row, _ in limits) for i in range(k)]
    need(free == [x == math.inf for x in alpha], "allocation: it must be infinite on the free arms only")
    alpha = {i: min(max(low[i], alpha[i]), high[i]) for i in range(k) if not free[i]}  # a bound need not be a double
    pivots, columns = indices(quotient["pivot_arms"], len(rows)), indices(quotient["pivot_columns"], d)
    basis, coordinates = indices(quotient["basis_arms"], len(rows)), indices(quotient["coordinates"], d)
    need(all(free[owners[n]] for n in pivots) and not {*coordinates} & {*columns}, "the quotient contradicts itself")
    modulo_free, spanned = division([rows[i] for i in pivots], columns), True  # columns that are not kept must follow
    for n in {n for n, i in enumerate(owners) if free[i]} - {*pivots}:
        need(assume("dependence", modulo_free(rows[n], range(d))[1], f"free arm {owners[n]} does not depend on pivot_arms"))
    if dropped := {*range(d)} - {*columns, *coordinates}:
        modulo_all = division([rows[i] for i in pivots + basis], columns + coordinates)
        sizes = [modulo_all(row, dropped)[1] for row in targets + [rows[n] for n, i in enumerate(owners) if alpha.get(i)]]
        spanned = assume("dependence", max(sizes, default=0), "targets or played arms do not depend on basis_arms")
    features = {n: modulo_free(rows[n], coordinates)[0] for n, i in enumerate(owners) if i in alpha}
    targets = [modulo_free(row, coordinates)[0] for row in targets]; asked = [j for j, row in enumerate(targets) if any(row)]
    played, unit = integers([alpha[owners[n]] / noise[n] for n in features])  # H is matrix/unit; y_j = adjugate · t_j ∝ H^-1 t_j
    adjugate, determinant = inverse(gram(played, features.values(), len(coordinates)))
    least, spent = (sum((costs[i] * x[i] for i in alpha), Fraction(0)) for x in (low, alpha))
    spanned = spanned and all(sum(c * alpha[i] for i, c in row.items()) <= b for row, b in limits)
    upper, below = (spent if limits else least) if spanned and not asked else math.inf, [i for i in alpha if charges[i] < 0]
    lower = sum((charges[i] * low[i] for i in alpha), -rent) + sum((high[i] - low[i]) * charges[i] for i in below)
    if asked and determinant:
        y = {j: [dot(row, targets[j]) for row in adjugate] for j in asked}; norms = {j: dot(targets[j], y[j]) for j in asked}
        worst = max(Fraction(unit * norms[j], determinant) / radii[j] for j in asked)
        bounded = limits or any(low[i] or high[i] != math.inf for i in alpha)
        if spanned and (worst <= 1 or not bounded): upper = spent * (1 if bounded else worst)  # without bounds worst · α is feasible
        # For all y_j and w_j, q, μ >= 0 the value is >= q (N²/Λ − Σ l_i p_i) + Σ l_i κ'_i − μᵀb − Σ (u_i − l_i)(q p_i − κ'_i)_+
        # for N = Σ w_j t_jᵀy_j, Λ = Σ w_j ρ_j, p_i = Σ w_j (f_iᵀy_j)², κ' = κ + Bᵀμ. Take w_j ∝ λ_j/ρ_j; concave in q: climb.
        weights, last, prices = integers([multipliers[j] / radii[j] for j in asked])[0], Fraction(0), dict.fromkeys(alpha, Fraction(0))
        form, total = gram(weights, y.values(), len(coordinates)), dot(weights, [radii[j] for j in asked])
        for n, f in features.items(): prices[owners[n]] += dot(f, [dot(row, f) for row in form]) / noise[n]
        slope = (dot(weights, norms.values()) ** 2 / total if total else 0) - sum(low[i] * prices[i] for i in alpha)
        for q, i in sorted((max(charges[i], 0) / prices[i], i) for i in alpha if prices[i]):
            lower, last = lower + max(slope, 0) * (q - last), q
            slope = -1 if high[i] == math.inf else slope - (high[i] - low[i]) * prices[i]
    if described["kind"] == "horizon" and "n" in described:
        log_n, rank = log(whole(described["n"], 3)), len(pivots) + len(coordinates)
        level = 2 * log_n + 2 + number(described["constant"]) * rank * log(max(rank, 1) * log_n)
        need(close(number(described["f_n"]), level), "f_n does not follow from n, the constant and the rank")
        lower = lower if spanned and determinant else Fraction(0)  # otherwise that is not proven to be the rank
    return max(lower, least), upper
def linear_constraints(document, costs, high):  # rows {arm: coefficient} with b, κ + Bᵀμ and μᵀb
    given, charges = document["program"].get("constraints", []), list(costs)
    rows = [dict(zip(indices(c["arms"], len(costs)), numbers(c["coefficients"], signed=True), strict=True)) for c in given]
    limits, mu = [number(c["limit"], signed=True) for c in given], numbers(document.get("constraint_multipliers", []), len(given))
    for i, part in [(i, m * c) for row, m in zip(rows, mu, strict=True) for i, c in row.items()]: charges[i] += part
    idle = any(c < 0 and u == math.inf for c, u in zip(charges, high, strict=True))  # then μ proves nothing, and μ = 0 does
    return [*zip(rows, limits, strict=True)], costs if idle else charges, Fraction(0) if idle else dot(mu, limits)
def division(rows, columns):  # eliminates columns by rows: of a row, what is left (times an integer), its relative size
    adjugate, determinant = inverse([[row[c] for c in columns] for row in rows] if len(rows) == len(columns) else [[0]])
    need(determinant, "pivot_arms or basis_arms are dependent in their columns, or not as many as these")
    def remainder(row, kept):
        factors = [-dot((row[c] for c in columns), column) for column in zip(*adjugate, strict=True)]
        terms = [[determinant * row[c], *(f * r[c] for f, r in zip(factors, rows, strict=True))] for c in kept]
        return list(map(sum, terms)), max((Fraction(abs(sum(t)), sum(map(abs, t))) for t in terms if sum(t)), default=0)
    return remainder
def inverse(matrix):  # integers A and d with matrix · A = d · identity, without fractions; d = 0 if it is singular
    n, last, work = len(matrix), 1, [row + unit for row, unit in zip(matrix, ones(len(matrix)), strict=True)]
    if not any(x for i, row in enumerate(matrix) for j, x in enumerate(row) if j != i):  # a diagonal, of side observations
        last = math.lcm(*(row[i] for i, row in enumerate(matrix)))
        return ([[last // row[i] if j == i else 0 for j in range(n)] for i, row in enumerate(matrix)], last) if last else ([], 0)
    for c in range(n):
        if (i := next((i for i in range(c, n) if work[i][c]), None)) is None: return [], 0
        work[c], work[i], p = work[i], work[c], work[i]
        work, last = [r if r is p else [(p[c] * x - r[c] * y) // last for x, y in zip(r, p, strict=True)] for r in work], p[c]
    return [row[n:] for row in work], last
def gram(by, rows, n): return [[sum(w * r[c] * r[e] for w, r in zip(by, rows, strict=True)) for e in range(n)] for c in range(n)]
def ones(n): return [[int(i == j) for j in range(n)] for i in range(n)]
def minus(row, other): return [x - y for x, y in zip(row, other, strict=True)]
def dot(row, other): return sum(x * y for x, y in zip(row, other, strict=True))
def log(x): return Fraction(decimal.Context(prec=50).ln(decimal.Context(prec=50).divide(x.numerator, x.denominator)))
def close(stored, value): return abs(stored - value) <= value / 10**12  # for f_n and log n, which are irrational
def integers(values):  # all of them times their common denominator, and that: no bound depends on the unit of the rows
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
def indices(x, n): return need(len({i for i in x if whole(i) < n}) == len(x), f"expected distinct indices below {n}") or [*x]
def show(x): return repr(float(x)) if x == math.inf or x < 2**1000 else "more than 2^1000"
def read(text: str) -> Any:  # strict JSON: no key twice, no NaN, no Infinity; a literal is the double that it denotes
    def once(pairs): return need(len(dict(pairs)) == len(pairs), f"a key twice: {[k for k, _ in pairs]}") or dict(pairs)
    def double(x): return need(math.isfinite(float(x)), f"{x:.40} is not a finite double") or Fraction(float(x))
    return json.loads(text, object_pairs_hook=once, parse_float=double, parse_constant=double)
def main(path: str) -> int:
    if path in ("-h", "--help"): print(__doc__); return 0
    try:
        with open(path, encoding="utf-8-sig") as file: verdict = judge(read(file.read()))
    except (OSError, ValueError, RecursionError) as error: print(f"not proven: {path}: {error.args[-1]}"); return 1
    print(f"the witness proves [{show(verdict.lower)}, {show(math.inf if verdict.upper is None else verdict.upper)}]")
    assumed = [f"assumed: {kind}, relative size {show(size)}" for kind, size in verdict.assumed.items()]
    print("\n".join(assumed + ([f"not proven: {problem}" for problem in verdict.problems] or ["the claim is proven"])))
    return 0 if verdict.proven else 1
if __name__ == "__main__": sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else "usage: python referee.py proof.json")
