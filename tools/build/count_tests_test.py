#!/usr/bin/env python3
"""count_tests.py on build events as Bazel writes them."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import count_tests  # pylint: disable=wrong-import-position

PASSED = '<testcase name="{}" classname="A" status="run" result="completed"/>'
FAILED = ('<testcase name="B" classname="A" status="run" result="completed">'
          '<failure message="x"/></testcase>')
SKIPPED = '<testcase name="C" status="run" result="skipped"/>'
DISABLED = '<testcase name="D" status="notrun" result="suppressed"/>'


class CountTestsTest(unittest.TestCase):

  def setUp(self):
    self.folder = tempfile.TemporaryDirectory()
    self.addCleanup(self.folder.cleanup)
    self.events = []

  def path(self, name):
    return os.path.join(self.folder.name, name)

  def add_result(self, label, status, cases, shard=1, attempt=1):
    name = f'test {len(self.events)}.xml'  # a space, as a URI has it
    with open(self.path(name), 'w', encoding='utf-8') as xml:
      xml.write(f'<testsuites><testsuite>{cases}</testsuite></testsuites>')
    uri = 'file://' + self.path(name).replace(' ', '%20')
    self.events.append({
        'id': {'testResult': {'label': label, 'shard': shard,
                              'attempt': attempt}},
        'testResult': {'status': status,
                       'testActionOutput': [{'name': 'test.xml', 'uri': uri}]},
    })

  def count(self, status=0):
    with open(self.path('events'), 'w', encoding='utf-8') as events:
      for event in self.events:
        events.write(json.dumps(event) + '\n')
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
      code = count_tests.main(self.path('events'), status)
    lines = output.getvalue().splitlines()
    self.assertEqual(code, 0 if lines[-1].endswith(' 0 failed') else 1)
    return lines

  def test_cases_are_summed_over_tests_and_shards(self):
    self.add_result('//a:t', 'PASSED', PASSED.format('1') + DISABLED)
    self.add_result('//a:t', 'PASSED', PASSED.format('2') + SKIPPED, shard=2)
    self.add_result('//b:t', 'PASSED', PASSED.format('1'))
    self.assertEqual(self.count(), ['skipped: 1', '3 passed, 0 failed'])

  def test_failed_cases_are_named(self):
    self.add_result('//a:t', 'FAILED', PASSED.format('1') + FAILED)
    self.assertEqual(self.count(3),
                     ['failed: //a:t  A.B', '1 passed, 1 failed'])

  def test_the_last_attempt_counts(self):
    self.add_result('//a:t', 'FAILED', FAILED)
    self.add_result('//a:t', 'PASSED', PASSED.format('B'), attempt=2)
    self.assertEqual(self.count(), ['1 passed, 0 failed'])

  def test_a_crash_is_a_failure(self):
    self.add_result('//a:t', 'TIMEOUT', '')
    self.assertEqual(self.count(3),
                     ['failed: //a:t  TIMEOUT', '0 passed, 1 failed'])

  def test_what_does_not_build_is_a_failure(self):
    self.events = [
        {'id': {'targetCompleted': {'label': '//a:good'}},
         'completed': {'success': True}},
        {'id': {'targetCompleted': {'label': '//a:bad'}}, 'completed': {}},
        {'id': {'targetCompleted': {'label': '//a:worse'}}, 'aborted': {}},
        {'id': {'targetCompleted': {'label': '//a:not_here'}},
         'aborted': {'reason': 'SKIPPED'}},
    ]
    self.assertEqual(self.count(1), ['failed: //a:bad  does not build',
                                     'failed: //a:worse  does not build',
                                     '0 passed, 2 failed'])

  def test_any_other_failure_of_bazel(self):
    self.assertEqual(self.count(37), ['failed: bazel  exit status 37',
                                      '0 passed, 1 failed'])


if __name__ == '__main__':
  unittest.main()
