#!/usr/bin/env python3
"""Proves that check_sources.py finds what it is there to find."""

import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import check_sources  # pylint: disable=wrong-import-position

LAYERS = os.path.join(HERE, '../../tools/build/layers.bzl')


def violations(files):
  """What the checker says of a tree of {path: text}."""
  with tempfile.TemporaryDirectory() as root:
    for path, text in files.items():
      os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
      with open(os.path.join(root, path), 'w', encoding='utf-8') as file:
        file.write(text)
    layers = check_sources.load_layers(LAYERS)
    return check_sources.Checker(root, layers).run()


def include(header):
  return f'// A comment.\n#include "{header}"\n'


class CheckSourcesTest(unittest.TestCase):

  def found(self, path, text, part, line=None):
    """Asserts that `text` at `path` violates exactly one rule."""
    found = violations({path: text})
    self.assertEqual(len(found), 1, found)
    self.assertIn(part, found[0])
    if line:
      self.assertTrue(found[0].startswith(f'{path}:{line}: '), found[0])

  def clean(self, path, text):
    self.assertEqual(violations({path: text}), [])

  def test_layers_that_must_not_meet(self):
    for path, header in (
        ('passes/lower/fuse.cc', 'runtime/plan/plan.h'),
        ('passes/lower/fuse.cc', 'kernels/kernel.h'),
        ('passes/lower/fuse_test.cc', 'kernels/kernel.h'),
        ('passes/pass.h', 'proto/strategy.pb.h'),
        ('kernels/cpu/relu.cc', 'passes/pass.h'),
        ('kernels/cpu/relu.cc', 'runtime/exec/executor.h'),
        ('runtime/exec/executor.cc', 'passes/pass.h'),
        ('runtime/plan/plan.cc', 'passes/pass.h'),
        ('runtime/plan/plan.cc', 'runtime/exec/executor.h'),
        ('runtime/plan/plan.cc', 'proto/compiled_model.pb.h'),
        ('runtime/exec/executor.cc', 'runtime/train/trainer.h'),
        ('runtime/train/trainer.cc', 'passes/pass.h'),
        ('runtime/report/console_report.cc', 'runtime/train/rank_setup.h'),
        ('runtime/report/run_events.h', 'graph/ir/program.h'),
        ('runtime/report/summary.cc', 'runtime/exec/executor.h'),
        ('runtime/log/console.h', 'runtime/report/run_events.h'),
        ('runtime/data/sampler.cc', 'runtime/device/device.h'),
        ('runtime/device/device.h', 'graph/ir/program.h'),
        ('runtime/collective/gloo.cc', 'graph/ir/program.h'),
        ('runtime/checkpoint/save.cc', 'runtime/device/device.h'),
        ('graph/base/half.h', 'graph/ir/program.h'),
        ('graph/ir/program.h', 'passes/pass.h'),
        ('graph/ir/program.h', 'kernels/kernel.h'),
        ('graph/ir/program.h', 'runtime/device/device.h'),
        ('graph/ir/program.h', 'proto/strategy.pb.h'),
        ('graph/ops/matmul.cc', 'tools/flags.h'),
        ('tools/run.cc', 'tests/helper.h'),
    ):
      with self.subTest(path=path, header=header):
        self.found(path, include(header), 'may not include', line=2)

  def test_layers_that_may_meet(self):
    for path, header in (
        ('graph/io/read.cc', 'proto/program.pb.h'),
        ('graph/ops/matmul.cc', 'graph/base/half.h'),
        ('passes/options/options.cc', 'proto/strategy.pb.h'),
        ('passes/pass.h', 'graph/ir/program.h'),
        ('kernels/cpu/relu.cc', 'runtime/device/device.h'),
        ('kernels/cuda/relu.cu', 'kernels/kernel.h'),
        ('runtime/log/log.cc', 'graph/base/error.h'),
        ('runtime/rendezvous/store.cc', 'proto/rendezvous.pb.h'),
        ('runtime/collective/gloo.cc', 'runtime/rendezvous/store.h'),
        ('runtime/checkpoint/save.cc', 'graph/ir/program.h'),
        ('runtime/exec/executor.cc', 'runtime/plan/plan.h'),
        ('runtime/exec/executor.cc', 'proto/compiled_model.pb.h'),
        ('runtime/train/trainer.cc', 'runtime/exec/executor.h'),
        ('runtime/train/reporter.cc', 'runtime/report/run_report.h'),
        ('runtime/launch/launch.cc', 'runtime/log/log.h'),
        ('tools/run.cc', 'runtime/train/trainer.h'),
        ('tests/ops/relu_test.cc', 'passes/pass.h'),
    ):
      with self.subTest(path=path, header=header):
        self.clean(path, include(header))

  def test_program_proto_is_for_graph_io(self):
    self.clean('graph/zoo/zoo.h', include('proto/program.pb.h'))
    self.found('tools/compile.cc', include('proto/program.pb.h'), 'graph/io')
    self.found('runtime/exec/executor.cc', include('proto/program.pb.h'),
               'graph/io')

  def test_copies_of_the_strategy(self):
    proto = 'message Train {\n'
    for number, name in enumerate(('epochs', 'seed', 'warmup'), 1):
      proto += f'  optional int64 {name} = {number} [(field) = {{\n'
    def copying(*names):
      return {'proto/strategy.proto': proto,
              'runtime/train/a.h': 'struct A {\n' + ''.join(
                  f'  int64_t {name} = 1;\n' for name in names) + '};\n'}
    found = violations(copying('epochs', 'other', 'seed', 'warmup_'))
    self.assertEqual(len(found), 1, found)
    self.assertIn('runtime/train/a.h:2: epochs, seed, warmup: fields of',
                  found[0])
    self.assertEqual(violations(copying('epochs', 'seed', 'other')), [])

  def test_folder_without_a_row(self):
    self.found('misc/a.cc', '', 'no row')
    self.found('runtime/misc/a.cc', '', 'no row')
    self.found('runtime/train/a.cc', include('runtime/misc/b.h'), 'no row')

  def test_includes_start_at_the_top(self):
    self.found('graph/ir/a.cc', include('../base/half.h'), 'from the top')
    self.assertEqual(len(violations({
        'graph/ir/a.cc': include('b.h'), 'graph/ir/b.h': ''})), 1)
    self.assertEqual(len(violations({
        'graph/a.cc': include('ir/b.h'), 'graph/ir/b.h': ''})), 1)
    self.clean('graph/ir/a.cc', include('absl/status/status.h'))

  def test_made_names_are_spelled_where_they_are_made(self):
    for text in ('f(w + ".grad");\n', 'f("w.grad.unscaled");\n',
                 'constexpr char kSuffix[] = ".cast_fp16";\n'):
      with self.subTest(text=text):
        self.found('passes/report.cc', text, 'makes that name', line=1)
        self.found('runtime/train/fetches.cc', text, 'makes that name')
        self.found('tools/report/explain.cc', text, 'makes that name')
        self.clean('passes/report_test.cc', text)
    self.clean('graph/ir/gradient_names.h', 'char k[] = ".grad";\n')
    self.clean('passes/precision/cast.cc', 'char k[] = ".cast_fp16";\n')
    self.clean('passes/report.cc', '// "w.grad"\nf("relu_grad", "a.gradient");\n')

  def test_targets_are_known_by_their_records(self):
    for text in ('if (target == "cpu") f();\n',
                 'if (device.target() != "cpu") f();\n',
                 'if (options.target->name == "sm") f();\n',
                 'f("sm_90");\n'):
      with self.subTest(text=text):
        self.found('passes/lower.cc', text, 'its record', line=1)
        self.clean('passes/lower_test.cc', text)
        self.clean('graph/targets/targets.cc', text)
    self.clean('runtime/launch/plan.cc', 'if (ranks == "cpu") f("cpu");\n')

  def test_cuda_headers(self):
    for header in ('cuda_runtime.h', 'cudnn_frontend.h', 'cublasLt.h',
                   'nccl.h', 'cub/cub.cuh', 'cuda/std/span'):
      with self.subTest(header=header):
        text = f'#include <{header}>\n'
        self.found('kernels/cpu/relu.cc', text, 'CUDA')
        self.found('runtime/collective/gloo.cc', text, 'CUDA')
        self.clean('kernels/cuda/relu.cu', text)
        self.clean('runtime/device/cuda/stream.cc', text)
        self.clean('runtime/collective/nccl_communicator.cc', text)

  def test_one_source_sees_the_parser(self):
    for header in ('"CLI/CLI.hpp"', '<CLI/App.hpp>'):
      for path in ('tools/run.cc', 'tools/verb.h', 'tools/common/run_flags.h',
                   'tools/common/command_line.h', 'tests/docs/cli_page.cc'):
        with self.subTest(path=path, header=header):
          self.found(path, f'\n#include {header}\n', 'method of its Verb',
                     line=2)
      self.clean('tools/common/command_line.cc', f'#include {header}\n')

  def test_string_view(self):
    self.found('graph/ir/a.h', 'void F(std::string_view s);\n', 'convert')
    self.found('graph/ir/a.h', '#include <string_view>\n', 'absl')
    self.clean('graph/ir/a.h', '// not std::string_view\n')

  def test_exit(self):
    self.found('runtime/exec/a.cc', 'void F() {\n  std::exit(1);\n}\n',
               'does not exit', line=2)
    self.found('graph/ir/a.cc', 'void F() { exit (1); }\n', 'does not exit')
    self.clean('graph/ir/a.cc', '// exit(1)\nauto s = "exit(1)"; AtExit(f);\n')
    self.clean('runtime/launch/a.cc', 'void Child() { _exit(127); }\n')
    self.clean('tools/a.cc', 'int main() { exit(1); }\n')

  def test_time_of_day(self):
    self.found('runtime/exec/a.cc', '\nauto now = absl::Now();\n',
               'graph/base/time', line=2)
    self.found('graph/ir/a.h', 'std::chrono::system_clock::now()\n', 'set it')
    self.clean('graph/ir/a.cc', '// not absl::Now()\nMonotonicTime::Now();\n')
    self.clean('runtime/log/event_file.cc', 'absl::Now();\n')
    self.clean('tests/faults/a.cc', 'absl::Now();\n')

  def test_marks(self):
    for mark in ('TO' + 'DO', 'FIX' + 'ME'):
      self.found('graph/ir/a.cc', f'\n// {mark}: later\n', mark, line=2)
      self.found('graph/ir/BUILD', f'# {mark}\n', mark)

  def test_lengths(self):
    self.found('graph/ir/a.cc', '\n' * 601, 'more than 600')
    self.clean('graph/ir/a.cc', '\n' * 600)
    self.found('tools/run.cc', '\n' * 151, 'more than 150')
    self.clean('tools/report/text.cc', '\n' * 151)
    self.found('passes/README.md', 'x\n' * 16, 'at most 15')
    self.clean('passes/README.md', 'x\n' * 15)
    self.clean('README.md', 'x\n' * 100)

  def test_pages_name_files_that_are_there(self):
    files = {'graph/ir/a.h': '', 'graph/ir/b.cc': '', 'graph/ir/c_test.cc': ''}
    def page(text, path='graph/ir/README.md'):
      return violations({**files, path: text})
    self.assertEqual(page('`a.h`, `{a.h,b.cc}`, `a.*`, `graph/ir/a.h`, '
                          '`c_test.cc`, [b](b.cc), `x.y`, `--flag`\n'
                          '```\n`graph/ir/gone.h`\n```\n'), [])
    self.assertEqual(page('`graph/ir/c_test`\n', 'docs/x.md'), [])
    for text in ('`gone.h`', '`{a,gone}.h`', '`gone.*`', '`graph/gone`',
                 '[gone](../gone.md)'):
      found = page('\n' + text + '\n')
      self.assertEqual(len(found), 1, text)
      self.assertIn('README.md:2: there is no', found[0])

  def test_pages_name_targets_that_are_there(self):
    files = {'graph/ir/BUILD': 'cc_library(name = "ir")\n',
             'graph/ir/a_test.cc': ''}
    def page(text):
      return violations({**files, 'graph/ir/README.md': text})
    self.assertEqual(page('`//graph/ir:ir`\n```\nbazel test //graph/... '
                          '//graph/ir:a_test //graph/ir:a_test_emulated\n```\n'
                          'https://a.b/c:80\n'), [])
    for text in ('//graph/ir:gone', '//graph/gone/...', '//graph:ir'):
      found = page('```\n' + text + '\n```\n')
      self.assertEqual(len(found), 1, text)
      self.assertIn('README.md:2: there is no //', found[0])

  def test_joined_sources_have_names_of_their_own(self):
    def source(inside, around='graph'):
      return (f'namespace {around} {{\nnamespace {{\n\n{inside}\n\n'
              f'}}  // namespace\n\nint F() {{ return 1; }}\n\n'
              f'}}  // namespace {around}\n')

    def found(one, other, build='', **kwargs):
      return violations({
          'graph/ir/BUILD': build, 'graph/ir/one_a.cc': source(one),
          'graph/ir/two_b.cc': source(other, **kwargs)})

    same = 'constexpr int kMost = 3;'
    text = 'std::string Text(const Op& op,\n                 int n) {\n}'
    for one, other in (
        (same, 'const char* const kMost[] = {\n    "a"};'),
        (same, 'Status kMost(int n);'),
        (text, 'template <typename T>\nbool Text(const Op& x, int m);'),
        ('using Json = a::json;', 'using Json = a::ordered_json;'),
        ('struct Row {\n  int n = 0;\n};', 'enum class Row { kOne };'),
        ('std::chrono::seconds kRetry(1);', 'constexpr int kRetry = 2;')):
      reports = found(one, other)
      self.assertEqual(len(reports), 1, (one, other, reports))
      self.assertIn('two_b.cc:', reports[0])
      self.assertIn('graph/ir/one_a.cc has that name too', reports[0])
      for build in ('alone = ["*"]', 'families = [\n"one_",\n"two_"]'):
        self.assertEqual(found(one, other, build), [])
      self.assertEqual(found(one, other, around='runtime'), [])
    for one, other in (
        (text, 'std::string Text(const Op& op);'),
        (text, 'Status Text::Run(const Op& op, int n) const {\n}'),
        (text, 'class Own {\n  Text* Text(const Op&, int);\n};'),
        ('using Json = a::json;', 'using Json = a::json;'),
        ('using ops::Row;', 'using ops::Row;')):
      self.assertEqual(found(one, other), [], (one, other))

  def test_comments_and_raw_strings_are_not_code(self):
    self.clean('passes/a.cc',
               '/*\n#include "runtime/plan/plan.h"\n*/\n'
               'auto s = R"(\n#include "kernels/kernel.h"\nexit(1))";\n'
               "int n = 1'000; char c = '\"'; // #include \"proto/x.pb.h\"\n")


if __name__ == '__main__':
  unittest.main()
