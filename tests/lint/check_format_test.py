#!/usr/bin/env python3
"""Proves that check_format.py and tools/pre_commit find what they should."""

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import check_format  # pylint: disable=wrong-import-position

GOOD = 'int F(int a) { return a; }\n'
BAD = 'int  F(int a){return a;}\n'
# As in pass headers: wider than a line may be, and to stay so.
PROGRAM = ('//     h.grad: sum(X=[h.grad.1, h.grad.2]) -> (Out=h.grad : '
           'f16[B,256])   backward f16 GRADIENT_OF <- h\n')
NEEDED = ('.clang-format', 'WORKSPACE', 'tools/pre_commit',
          'tools/build/layers.bzl', 'tests/lint/check_format.py',
          'tests/lint/check_sources.py', 'tests/lint/unnamed_names.py')


def write(root, path, text):
  os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
  with open(os.path.join(root, path), 'w', encoding='utf-8') as file:
    file.write(text)


class Tree(unittest.TestCase):
  """A small tree with the checks in it."""

  def setUp(self):
    if check_format.find_formatter() is None:
      self.skipTest(check_format.SKIPPED)
    place = tempfile.TemporaryDirectory()
    self.addCleanup(place.cleanup)
    self.root = os.path.realpath(place.name)
    for path in NEEDED:
      os.makedirs(os.path.join(self.root, os.path.dirname(path)), exist_ok=True)
      shutil.copy(os.path.join(TOP, path), os.path.join(self.root, path))


class CheckFormatTest(Tree):

  def check(self, *paths, fix=False):
    with contextlib.redirect_stdout(io.StringIO()) as said:
      result = check_format.check(self.root, paths, fix)
    return result, said.getvalue()

  def test_what_differs_is_named_with_its_line(self):
    write(self.root, 'graph/ir/a.cc', GOOD)
    write(self.root, 'graph/ir/b.cu', GOOD + BAD)
    result, said = self.check()
    self.assertEqual(result, 1)
    self.assertIn('graph/ir/b.cu:2: ', said)
    self.assertNotIn('a.cc', said)
    self.assertEqual(self.check('graph/ir/a.cc')[0], 0)

  def test_fix(self):
    write(self.root, 'graph/ir/b.h', BAD)
    self.assertEqual(self.check(fix=True)[0], 0)
    self.assertEqual(self.check()[0], 0)
    with open(os.path.join(self.root, 'graph/ir/b.h'), encoding='utf-8') as b:
      self.assertEqual(b.read(), GOOD)

  def test_programs_in_comments_keep_their_lines(self):
    write(self.root, 'graph/ir/a.h', '// After:\n//\n' + PROGRAM + GOOD)
    self.assertEqual(self.check()[0], 0)


class PreCommitTest(Tree):

  def setUp(self):
    super().setUp()
    if shutil.which('git') is None:
      self.skipTest('skipped: git is not installed')
    self.git('init', '-q')
    self.git('add', '-A')
    self.git('commit', '-q', '-m', 'first')
    subprocess.run([os.path.join(self.root, 'tools/pre_commit'), '--install'],
                   cwd=self.root, check=True, capture_output=True)

  def git(self, *words, check=True):
    environment = {**os.environ, 'HOME': self.root, 'GIT_CONFIG_NOSYSTEM': '1',
                   'PYTHONDONTWRITEBYTECODE': '1'}
    return subprocess.run(
        ['git', '-c', 'user.name=a', '-c', 'user.email=a@b', *words],
        cwd=self.root, env=environment, check=check, capture_output=True,
        text=True)

  def commit(self):
    done = self.git('commit', '-m', 'next', check=False)
    return done.returncode, done.stdout + done.stderr

  def test_what_is_staged_counts(self):
    write(self.root, 'graph/ir/a.cc', BAD)
    self.git('add', 'graph/ir/a.cc')
    write(self.root, 'graph/ir/a.cc', GOOD)  # not staged
    code, said = self.commit()
    self.assertEqual(code, 1, said)
    self.assertIn('graph/ir/a.cc:1: ', said)
    self.git('add', 'graph/ir/a.cc')
    write(self.root, 'graph/ir/b.cc', BAD)  # nor is this
    self.assertEqual(self.commit()[0], 0)

  def test_rules_on_sources(self):
    write(self.root, 'graph/ir/a.cc', '#include "passes/pass.h"\n')
    self.git('add', 'graph/ir/a.cc')
    code, said = self.commit()
    self.assertEqual(code, 1)
    self.assertIn('may not include', said)

  def test_a_removed_file_is_not_looked_for(self):
    write(self.root, 'graph/ir/a.cc', GOOD)
    self.git('add', 'graph/ir/a.cc')
    self.assertEqual(self.commit()[0], 0)
    self.git('rm', '-q', 'graph/ir/a.cc')
    self.assertEqual(self.commit()[0], 0)


if __name__ == '__main__':
  unittest.main()
