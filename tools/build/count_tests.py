"""Counts the test cases of one `bazel test` from its build events.

usage: count_tests.py EVENTS.json BAZEL_EXIT_STATUS

Prints what failed, then "N passed, N failed"; exits 1 if anything failed.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree


def read_cases(path):
  """(passed, skipped, names of failed cases) of one test.xml."""
  passed, skipped, failed = 0, 0, []
  for case in xml.etree.ElementTree.parse(path).iter('testcase'):
    if case.find('failure') is not None or case.find('error') is not None:
      suite = case.get('classname')
      name = case.get('name')
      failed.append(f'{suite}.{name}' if suite else name)
    elif case.get('status') == 'notrun':
      pass  # disabled
    elif case.get('result') == 'skipped':
      skipped += 1
    else:
      passed += 1
  return passed, skipped, failed


def xml_path(result):
  for output in result.get('testActionOutput', []):
    if output['name'] == 'test.xml':
      return urllib.parse.unquote(urllib.parse.urlparse(output['uri']).path)
  return None


def read_events(path):
  """The last attempt at each test, and the targets that did not build."""
  results, unbuilt = {}, set()
  with open(path, encoding='utf-8') as events:
    for line in events:
      event = json.loads(line)
      target = event['id'].get('targetCompleted')
      # What cannot run on this machine (no CUDA toolkit) is left out.
      left_out = event.get('aborted', {}).get('reason') == 'SKIPPED'
      built = event.get('completed', {}).get('success')
      if target and not built and not left_out:
        unbuilt.add(target['label'])
      test = event['id'].get('testResult')
      if test and 'testResult' in event:
        key = (test['label'], test.get('run', 1), test.get('shard', 1))
        results[key] = event['testResult']
  return results, unbuilt


def main(events, status):
  results, unbuilt = read_events(events)
  passed, skipped, failed = 0, 0, []
  for (label, _, _), result in sorted(results.items()):
    cases = (0, 0, [])
    path = xml_path(result)
    if path:
      try:
        cases = read_cases(path)
      except (OSError, xml.etree.ElementTree.ParseError) as error:
        print(f'cannot read {path}: {error}', file=sys.stderr)
        cases = (0, 0, ['unreadable test.xml'])
    passed += cases[0]
    skipped += cases[1]
    failed += [f'{label}  {name}' for name in cases[2]]
    # A test that crashed or ran out of time names no case.
    if result.get('status') != 'PASSED' and not cases[2]:
      failed.append(f'{label}  {result.get("status", "NO_STATUS")}')
  failed += [f'{label}  does not build' for label in sorted(unbuilt)]
  if status != 0 and not failed:
    failed.append(f'bazel  exit status {status}')
  for name in failed:
    print(f'failed: {name}')
  if skipped:
    print(f'skipped: {skipped}')
  print(f'{passed} passed, {len(failed)} failed')
  return 1 if failed else 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1], int(sys.argv[2])))
