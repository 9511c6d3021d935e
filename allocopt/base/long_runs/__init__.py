"""Work that takes days: a folder that keeps what is finished, what its results depend on, and the processes that do it."""
