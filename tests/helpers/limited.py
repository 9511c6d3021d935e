"""Linear constraints of a canonical problem, from rows."""

import numpy as np

from allocopt.certify.canonical import Limits


def limits(rows, room, sizes=None, error=0.0):
    matrix = np.array(rows, dtype=float)
    places, variables = np.nonzero(matrix)
    sizes = np.abs(np.array(room, dtype=float)) if sizes is None else np.array(sizes, dtype=float)
    return Limits(
        places, variables, matrix[places, variables], np.array(room, dtype=float), sizes, error, matrix.shape[1]
    )
