"""What every room uses: errors, checked input, tolerances, files, processes, compiling."""
