"""The one certificate: what a pair (α, λ) proves for the user's doubles, under which assumptions, and how to check it again."""
