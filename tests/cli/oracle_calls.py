"""How the scripts beside it call halftone."""

import subprocess


def run(words, timeout=None):
    """Exit code, and what was said to either stream."""
    made = subprocess.run(words,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          text=True,
                          timeout=timeout)
    return made.returncode, made.stdout


def call(words):
    """What was said; an exception if it failed."""
    code, said = run(words)
    if code != 0:
        raise RuntimeError(" ".join(words[:3]) + ": " + said.strip())
    return said
