"""Output for terminals and files whose encoding has no Greek letters: θ becomes theta, and nothing ever fails for a character."""

from __future__ import annotations

import codecs
import contextlib
import io
import sys
from typing import Any

from rich.console import Console

__all__ = ["in_ascii", "new_console", "readable_everywhere"]

_WORDS = {
    "θ": "theta", "α": "alpha", "λ": "lambda", "σ": "sigma", "ε": "eps", "τ": "tau", "ν": "nu", "ω": "omega", "π": "pi", "Δ": "gap",
    "Σ": "sum", "ρ": "rho", "η": "eta", "β": "beta", "γ": "gamma", "μ": "mu", "∞": "inf", "·": "*", "×": "x", "−": "-", "–": "-",
    "—": "-", "…": "...", "→": "->", "←": "<-", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "±": "+-", "‖": "|", "′": "'", "’": "'",
    "“": '"', "”": '"', "√": "sqrt", "∈": "in", "ᵀ": "^T", "½": "1/2",
    "∇": "grad", "∂": "d", "⟨": "<", "⟩": ">", "δ": "delta", "κ": "kappa", "φ": "phi",
    "ψ": "psi", "Λ": "Lambda", "⌈": "ceil(", "⌉": ")", "⌊": "floor(", "⌋": ")", "∝": "~",
    "ℓ": "l", "á": "a", "é": "e", "₊": "+", "₋": "-",
    "\N{COMBINING CIRCUMFLEX ACCENT}": "-hat", "ö": "oe", "ü": "ue", "ä": "ae",
    **dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True)), **{c: f"^{i}" for i, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}, "⁻": "^-",
}  # fmt: skip
_TABLE = str.maketrans(_WORDS)


def in_ascii(text: str) -> str:
    """The text with the letters and signs that we use in words.

    Examples
    --------
    >>> in_ascii("‖θ‖² ≤ c·log n")
    '|theta|^2 <= c*log n'
    """
    return text.translate(_TABLE)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(_in_encoding(c, error.encoding) for c in error.object[error.start : error.end]), error.end


def _in_encoding(character: str, encoding: str) -> str:
    words = "." if character == "…" else _WORDS.get(character, "?")  # rich cuts off with one character
    try:
        words.encode(encoding)
    except UnicodeEncodeError:
        return "?"
    return words


def readable_everywhere() -> None:
    """What standard output and error cannot encode is written in words from now on."""
    codecs.register_error("allocopt-words", _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(OSError, ValueError):  # a stream that is closed
                stream.reconfigure(errors="allocopt-words")


class _Words(Console):
    """A console whose texts are in words before their width is measured, so that tables stay straight."""

    def render_str(self, text: str, **how: Any) -> Any:
        return super().render_str(in_ascii(text), **how)


def new_console(**how: Any) -> Console:
    """A rich console as the commands use it: in words where the terminal knows ASCII only, and without colouring numbers by itself."""
    plain = Console(**{"highlight": False, **how})
    return plain if plain.encoding.lower().startswith("utf") else _Words(**{"highlight": False, **how})
