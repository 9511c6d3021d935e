"""Sets of actions: spanners, oracles, graphs."""
