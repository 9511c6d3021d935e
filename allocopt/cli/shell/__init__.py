"""What surrounds a command: errors as one line, interrupts, terminals that know no Greek, files that must not be lost."""
