#!/usr/bin/env python3
"""Holds the rules on sources that no compiler holds.

usage: check_sources.py FILE

FILE is any file at the top of the tree to check; symbolic links are followed,
so that a test's copy leads to the real tree. Prints one line per violation
and exits 1 if there is any. Who may include whom stands in
tools/build/layers.bzl.
"""

import ast
import fnmatch
import glob
import os
import re
import sys

sys.dont_write_bytecode = True

import unnamed_names  # pylint: disable=wrong-import-position

# Build outputs, results of runs, and what is not ours.
SKIPPED_FOLDERS = ('.git', 'bazel-*', 'runs', 'node_modules', '__pycache__')

CXX = ('.h', '.cc', '.cu', '.cuh', '.inc')
SOURCES = CXX + ('.py', '.sh', '.bzl', '.proto')
LIBRARIES = ('graph', 'passes', 'kernels', 'runtime')

MAX_LINES = 600
MAX_VERB_LINES = 150  # a verb of the binary is flags and calls
MAX_README_LINES = 15

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)
CUDA_HEADER = re.compile(
    r'^(cuda|cudnn|cublas|cufft|curand|cusparse|cusolver|nccl|nvml|nvrtc|nvtx'
    r'|nvToolsExt|driver_types|vector_types|device_launch_parameters'
    r'|cub/|thrust/|cooperative_groups|cute/|cutlass)')
# Dear to compile: everybody else includes the header beside its source.
PARSER_HEADER = re.compile(r'CLI/')
PARSER = 'tools/common/command_line.cc'
MARKS = re.compile(r'\b(TO' + r'DO|FIX' + r'ME)\b')
EXIT = re.compile(r'\b(?:quick_)?exit\s*\(')
TIME_OF_DAY = re.compile(
    r'\b(absl::Now|GetCurrentTimeNanos|system_clock|gettimeofday'
    r'|CLOCK_REALTIME)\b')
# What these write is for people and other programs.
TELL_THE_TIME = (
    'graph/base/disk/directory_lock.cc',
    'runtime/launch/failure_report.cc',
    'runtime/log/event_file.cc',
    'runtime/report/metrics_log.cc',
)

# Fields of strategies are read from the message that declares them.
STRATEGY = ('proto/strategy.proto', 'proto/dist.proto',
            'proto/learning_rate.proto', 'proto/optimizer.proto',
            'proto/train.proto')
STRATEGY_FIELD = re.compile(
    r'^\s*(?:(?:optional|repeated) )?(?:bool|string|double|int64) (\w+) = \d',
    re.M)
MEMBER = re.compile(
    r'^[ \t]+(?:bool|int|u?int\d+_t|float|double|std::string|std::vector<.*>) '
    r'(\w+?)_?(?: = [^;()]*)?;', re.M)
MAX_FIELDS_OF_STRATEGY = 2  # a header may share a word or two by chance

# What gradients and casts are called is for people. Each name is made in one
# place; everything else asks the program whose gradient or cast a value is.
MADE_NAMES = (
    (re.compile(r'\.grad\b'), 'graph/ir/gradient_names.h'),
    (re.compile(r'\.cast_'), 'passes/precision/cast.cc'),
)
# What a target is, stands in its record: nobody asks for one by its name.
TARGETS = 'graph/targets/'
GPU_TARGET = re.compile(r'\bsm_\d')
ONE_TARGET = re.compile(r'\btarget\w*(?:\(\))?(?:(?:\.|->)name)? [!=]= "')
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')

# What becomes no part of a product's library, and libraries whose sources are compiled
# each by itself, or only with those whose names begin alike.
PROGRAM = re.compile(r'_(?:test|testing|main|benchmark)\.cc$')
ALL_ALONE = re.compile(r'alone = \["\*"\]')
FAMILIES = re.compile(r'families = \[(.*?)\]', re.S)

FENCE = re.compile(r'^```.*?^```', re.M | re.S)
# `kernels/cpu/{conv,norm}.cc`, `trainer.*`; no commands, no <placeholders>.
NAMED = re.compile(r'`(/?[\w./*{},-]*\w[\w./*{},-]*)`')
# //tests/ops:conformance_test, //graph/...
TARGET = re.compile(r'(?<![\w:/])//(\w[\w/]*?)(?:/\.\.\.|:([\w.]*\w))')
LINK = re.compile(r'\]\((?!https?:|#)([^)#\s]+)[^)]*\)')

# Longest match first: raw strings, strings, characters, comments.
LITERAL = re.compile(
    r'R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'"
    r'|//(?:\\\n|[^\n])*'
    r'|/\*.*?\*/', re.S)


def load_layers(path):
  """LAYERS of tools/build/layers.bzl, which is a literal in Python too."""
  with open(path, encoding='utf-8') as source:
    tree = ast.parse(source.read())
  for node in tree.body:
    if isinstance(node, ast.Assign) and node.targets[0].id == 'LAYERS':
      return ast.literal_eval(node.value)
  raise ValueError(f'{path} has no LAYERS')


def covers(folder, path):
  return path == folder or path.startswith(folder + '/')


def row_of(path, layers):
  """The folder whose row is for `path`: the deepest one above it."""
  rows = [folder for folder in layers if covers(folder, path)]
  return max(rows, key=len) if rows else None


def blank(text, keep_strings=False):
  """`text` without comments and strings, every line where it was.

  With `keep_strings` ordinary strings stay, since includes look like them.
  """
  def replace(match):
    found = match.group(0)
    if keep_strings and found.startswith('"'):
      return found
    return '\n' * found.count('\n') or ' '
  return LITERAL.sub(replace, text)


def paths_below(root):
  """The files of the tree, by their paths from its top, in order."""
  for folder, folders, files in os.walk(root):
    folders[:] = sorted(
        f for f in folders
        if not any(fnmatch.fnmatch(f, skipped) for skipped in SKIPPED_FOLDERS))
    for name in sorted(files):
      yield os.path.relpath(os.path.join(folder, name), root)


def spelled_out(name):
  """`{a,b}_test.cc` as its names."""
  braces = re.search(r'\{([^{}]*,[^{}]*)\}', name)
  if not braces:
    return [name]
  return [one for part in braces.group(1).split(',') for one in
          spelled_out(name[:braces.start()] + part + name[braces.end():])]


def line_of(text, position):
  return text.count('\n', 0, position) + 1


class Checker:
  """Collects the violations in the files of one tree."""

  def __init__(self, root, layers):
    self.root = root
    self.layers = layers
    self.tops = {folder.split('/')[0] for folder in layers}
    self.violations = []
    self.strategy_fields = set()
    self.unnamed = {}  # (folder, family) -> name -> [(path, Name)]
    for path in STRATEGY:
      if os.path.exists(os.path.join(root, path)):
        self.strategy_fields.update(STRATEGY_FIELD.findall(self.read(path)))

  def report(self, path, line, message):
    self.violations.append(f'{path}:{line}: {message}')

  def run(self):
    for path in paths_below(self.root):
      name = os.path.basename(path)
      if name == 'README.md' and path != name:
        self.check_readme(path)
      if name.endswith('.md'):
        self.check_names(path)
      elif name.endswith(SOURCES) or name == 'BUILD':
        self.check_source(path)
    return self.violations

  def read(self, path):
    with open(os.path.join(self.root, path), encoding='utf-8') as source:
      return source.read()

  def check_readme(self, path):
    lines = self.read(path).count('\n')
    if lines > MAX_README_LINES:
      self.report(path, lines, f'a README has at most {MAX_README_LINES} lines')

  def check_names(self, path):
    """Files that a page names in `code` are there, from its folder or the top;
    so are its links."""
    # What stands in fences is output, commands and formats.
    text = FENCE.sub(lambda fence: '\n' * fence.group(0).count('\n'),
                     self.read(path))
    folder = os.path.join(self.root, os.path.dirname(path))
    for found in list(NAMED.finditer(text)) + list(LINK.finditer(text)):
      name = found.group(1)
      is_file = name.endswith(SOURCES + ('.md', '.*')) and name[0] != '*'
      if found.re is NAMED and not is_file and (
          name.split('/')[0] not in self.tops or '/' not in name):
        continue
      for one in spelled_out(name):
        if not any(glob.glob(os.path.join(place, one + end))
                   for place in (folder, self.root) for end in ('', '.cc')):
          self.report(path, line_of(text, found.start()),
                      f'there is no {one}')
    self.check_targets(path, self.read(path))

  def check_targets(self, path, text):
    """Bazel targets that a page names: in a BUILD file, or of a source."""
    for found in TARGET.finditer(text):
      folder, target = found.groups()
      place = os.path.join(self.root, folder)
      known = os.path.isdir(place)
      if known and target and target != 'all':
        build = os.path.join(folder, 'BUILD')
        known = os.path.exists(os.path.join(self.root, build)) and (
            f'"{target}"' in self.read(build) or
            any(target.startswith(os.path.splitext(name)[0])
                for name in os.listdir(place) if name.endswith('.cc')))
      if not known:
        self.report(path, line_of(text, found.start()),
                    f'there is no {found.group(0)}')

  def check_source(self, path):
    text = self.read(path)
    limit = MAX_LINES
    if fnmatch.fnmatch(path, 'tools/*.cc') and path.count('/') == 1:
      limit = MAX_VERB_LINES
    lines = text.count('\n')
    if lines > limit:
      self.report(path, lines, f'more than {limit} lines')
    for mark in MARKS.finditer(text):
      self.report(path, line_of(text, mark.start()),
                  f'{mark.group(0)}: finish it, or write an issue')
    if path.endswith(CXX):
      code = blank(text, keep_strings=True)
      self.check_includes(path, code)
      if path.split('/')[0] in LIBRARIES + ('tools',):
        self.check_made_names(path, code)
        self.check_targets_by_name(path, code)
      self.check_code(path, blank(text))
      if path.endswith('.cc') and not PROGRAM.search(path):
        self.check_unnamed(path, blank(text))
    if path.endswith('.h'):
      self.check_copies(path, blank(text))

  def check_copies(self, path, code):
    """A struct that repeats the strategy has to be kept in step by hand."""
    found = [member for member in MEMBER.finditer(code)
             if member.group(1) in self.strategy_fields]
    names = sorted({member.group(1) for member in found})
    if len(names) > MAX_FIELDS_OF_STRATEGY:
      self.report(path, line_of(code, found[0].start()),
                  f'{", ".join(names)}: fields of {STRATEGY[0]}; read them from '
                  'proto::Strategy')

  def family_of(self, path):
    """Equal for sources that may be joined (tools/build/units.bzl); None for
    one that is not."""
    folder, name = os.path.split(path)
    build = os.path.join(folder, 'BUILD')
    if not os.path.exists(os.path.join(self.root, build)):
      return folder, ''
    text = self.read(build)
    if ALL_ALONE.search(text):
      return None
    families = FAMILIES.search(text)
    for family in STRING.findall(families.group(1)) if families else []:
      if name.startswith(family.strip('"')):
        return folder, family
    return folder, ''

  def check_unnamed(self, path, code):
    """Sources of a library are joined, so that names are its own."""
    family = self.family_of(path)
    if family is None:
      return
    taken = self.unnamed.setdefault(family, {})
    for one in unnamed_names.unnamed_names(code):
      known = taken.setdefault(one.name, [])
      for other_path, other in known:
        if other_path != path and unnamed_names.clash(one, other):
          self.report(path, line_of(code, one.position),
                      f'{one.name}: {other_path} has that name too; their '
                      'unnamed namespaces are one where sources are joined '
                      '(tools/build/units.bzl)')
          break
      known.append((path, one))

  def check_code(self, path, code):
    for found in re.finditer(r'\bstd::string_view\b', code):
      self.report(path, line_of(code, found.start()),
                  'std::string_view: absl::string_view does not convert to it')
    if path.split('/')[0] in LIBRARIES:
      for found in EXIT.finditer(code):
        self.report(path, line_of(code, found.start()),
                    'a library does not exit, it returns a Status')
      if path not in TELL_THE_TIME:
        for found in TIME_OF_DAY.finditer(code):
          self.report(path, line_of(code, found.start()),
                      f'{found.group(0)}: somebody may set it; deadlines and '
                      'durations go by graph/base/time')

  def check_made_names(self, path, code):
    if path.endswith('_test.cc') or 'testing' in path:
      return
    for found in STRING.finditer(code):
      for name, maker in MADE_NAMES:
        if path != maker and name.search(found.group(0)):
          self.report(path, line_of(code, found.start()),
                      f'{found.group(0)}: {maker} makes that name; ask the '
                      'program whose gradient or cast a value is')

  def check_targets_by_name(self, path, code):
    if path.startswith(TARGETS) or path.endswith('_test.cc'):
      return
    found = [string for string in STRING.finditer(code)
             if GPU_TARGET.search(string.group(0))]
    for at in found + list(ONE_TARGET.finditer(code)):
      self.report(path, line_of(code, at.start()),
                  f'{at.group(0)}: what a target is, its record in '
                  f'{TARGETS} says')

  def check_includes(self, path, code):
    folder = os.path.dirname(path)
    row = row_of(folder, self.layers)
    if row is None:
      self.report(path, 1, f'{folder or "the top folder"} has no row in '
                  'tools/build/layers.bzl')
      return
    for found in INCLUDE.finditer(code):
      line = line_of(code, found.start())
      header = found.group(2)
      if header == 'string_view':
        self.report(path, line, '<string_view>: use absl::string_view')
      if CUDA_HEADER.match(header) and not self.is_cuda(path):
        self.report(path, line, f'{header}: CUDA headers are for */cuda/ and '
                    'runtime/collective/nccl* alone')
      if PARSER_HEADER.match(header) and path != PARSER:
        self.report(path, line, f'{header}: seconds of compiling, for {PARSER} '
                    'alone; a new kind of flag is a method of its Verb')
      if found.group(1) == '"' and self.is_relative(folder, header):
        self.report(path, line, f'"{header}": write the path from the top')
      elif header.split('/')[0] in self.tops:
        self.check_layer(path, line, row, header)

  @staticmethod
  def is_cuda(path):
    return ('/cuda/' in path or
            fnmatch.fnmatch(path, 'runtime/collective/nccl*'))

  def is_relative(self, folder, header):
    if '..' in header.split('/'):
      return True
    beside = os.path.join(self.root, folder, header)
    from_top = os.path.join(self.root, header)
    return os.path.exists(beside) and not os.path.exists(from_top)

  def check_layer(self, path, line, row, header):
    target = row_of(os.path.dirname(header), self.layers)
    if target is None:
      self.report(path, line, f'"{header}": {os.path.dirname(header)} has no '
                  'row in tools/build/layers.bzl')
    elif target != row and not any(
        covers(folder, target) for folder in self.layers[row]):
      self.report(path, line, f'"{header}": {row} may not include {target} '
                  '(tools/build/layers.bzl)')
    if (header == 'proto/program.pb.h' and
        row not in ('graph/builder', 'graph/io', 'graph/subset', 'graph/zoo',
                    'tests')):
      self.report(path, line, f'"{header}": program.proto is seen by what '
                  'writes models (graph/builder, graph/subset, graph/zoo) and '
                  'by graph/io')


def main(file):
  root = os.path.dirname(os.path.realpath(file))
  layers = load_layers(os.path.join(root, 'tools/build/layers.bzl'))
  violations = Checker(root, layers).run()
  for violation in violations:
    print(violation)
  print(f'{len(violations)} violations in {root}')
  return 1 if violations else 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1]))
