"""The commands of the insight room: hardness, study, bound, constants."""
