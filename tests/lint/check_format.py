#!/usr/bin/env python3
"""Holds all sources to .clang-format.

usage: check_format.py [--fix] FILE [PATH...]

FILE is any file at the top of the tree to check (links are followed); PATHs
are the sources to check, from the top: none: all. --fix writes them as they
should be. Exits 1 if any differs. Versions of clang-format differ in details:
the one of Debian 12 is the reference, and without it nothing is checked,
which is said.
"""

import argparse
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_sources import CXX, paths_below  # pylint: disable=wrong-import-position

VERSION = 14
FORMATTED = CXX + ('.proto',)
NAMES = (f'clang-format-{VERSION}', 'clang-format')
PER_CALL = 100  # paths: a command line is not endless
SKIPPED = (f'skipped: no clang-format {VERSION} is installed '
           '(apt-get install clang-format)')


def find_formatter():
  """The command, or None where there is none of the version."""
  for name in NAMES:
    try:
      said = subprocess.run([name, '--version'], capture_output=True, text=True,
                            check=True).stdout
    except (OSError, subprocess.CalledProcessError):
      continue
    version = re.search(r'version (\d+)', said)
    if version and int(version.group(1)) == VERSION:
      return name
  return None


def differing(formatter, root, paths):
  """Those of `paths` that it would write otherwise, with the first line."""
  found = {}
  for start in range(0, len(paths), PER_CALL):
    said = subprocess.run(
        [formatter, '--dry-run', *paths[start:start + PER_CALL]], cwd=root,
        capture_output=True, text=True, check=False)
    for path, line in re.findall(
        r'^(.+?):(\d+):\d+: warning: code should be clang-formatted',
        said.stderr, re.M):
      found.setdefault(path, int(line))
    if said.returncode != 0:
      raise RuntimeError(said.stderr)
  return found


def check(root, paths=(), fix=False):
  """Prints what differs; the exit code, or None where nothing was checked."""
  formatter = find_formatter()
  if formatter is None:
    print(SKIPPED)
    return None
  wanted = [path for path in (paths or paths_below(root))
            if path.endswith(FORMATTED)]
  found = differing(formatter, root, wanted)
  if fix and found:
    subprocess.run([formatter, '-i', *found], cwd=root, check=True)
  for path, line in sorted(found.items()):
    print(f'{path}:{line}: ' + ('formatted' if fix else
                                f'{formatter} writes it otherwise'))
  print(f'{len(found)} of {len(wanted)} sources '
        + ('formatted' if fix else 'differ'))
  if found and not fix:
    print('to mend: tests/lint/check_format.py --fix WORKSPACE '
          + ' '.join(sorted(found)))
  return 1 if found and not fix else 0


def say_skipped():
  """So that a skipped test is counted as one."""
  file = os.environ.get('XML_OUTPUT_FILE')
  if file:
    with open(file, 'w', encoding='utf-8') as report:
      report.write('<testsuites><testsuite name="format"><testcase '
                   'name="format" status="run" result="skipped"/></testsuite>'
                   '</testsuites>\n')


def main():
  parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
  parser.add_argument('--fix', action='store_true')
  parser.add_argument('file')
  parser.add_argument('path', nargs='*')
  flags = parser.parse_args()
  result = check(os.path.dirname(os.path.realpath(flags.file)), flags.path,
                 flags.fix)
  if result is None:
    say_skipped()
    return 0
  return result


if __name__ == '__main__':
  sys.exit(main())
