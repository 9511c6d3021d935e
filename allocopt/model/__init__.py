"""What users describe: arms, bandits, programs, levels, and the solutions they get."""
