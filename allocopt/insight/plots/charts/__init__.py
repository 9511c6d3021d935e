"""Charts of numbers: bars, curves along a family, heat maps, performance profiles."""
