"""Parts of the arena: the fixed list of instances, playing within a budget, figures, the page."""
