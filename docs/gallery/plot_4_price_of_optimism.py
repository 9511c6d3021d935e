"""
The price of optimism
=====================

What an optimistic algorithm pays at least, over what is necessary, for several ε and several widths of its confidence
sets. As ε gets smaller, optimism becomes arbitrarily expensive.
"""

import numpy as np

import allocopt as ao

epsilons, widths = [1e-2, 3e-3, 1e-3, 3e-4, 1e-4], [1.0, 1.5, 2.0, 3.0]
price = np.array(
    [[ao.hardness(ao.instances.optimism_example(e, 1.0)).price_of_optimism(w) for e in epsilons] for w in widths]
)
figure = ao.plots.heat_map(
    epsilons, widths, price, x_name="ε", y_name="squared width / log n", quantity="optimism / c", width=5
)
