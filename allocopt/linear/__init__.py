"""Arrays alone: spans and quotients, gaps, norms, and what rounding does to them."""
