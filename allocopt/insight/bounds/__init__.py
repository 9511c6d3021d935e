"""What no policy can beat at this n: the bound, the search for the alternatives that it needs, and its proof files."""
