"""What the unnamed namespaces of sources hold, as far as lint has to know."""

import collections
import re

# As clang-format lays it out: what such a namespace holds begins in column 0.
AROUND = re.compile(r'^namespace (\w+) \{$', re.M)
# The comment at its end has left blanks.
NAMESPACE = re.compile(r'^namespace \{\n(.*?)^\}[ ]+$', re.M | re.S)
DECLARED = re.compile(
    r'^(?!namespace\b|template\b|using namespace\b|using [\w:]+;)'
    r'([A-Za-z_](?:[^;{=()]|\((?:[^()]|\([^()]*\))*\))*)([;{=]?)', re.M)
ALIAS = re.compile(r'using (\w+) =[^;]*;')
TYPE = re.compile(r'(?:struct|class|union|enum(?: class)?) (\w+)')
# Not a member's definition.
FUNCTION = re.compile(
    r'.*?(?<![\w:])(\w+)\s*(\((?:[^()]|\([^()]*\))*\))(?: const)?$')
VARIABLE = re.compile(r'.*?(\w+)(?:\s*\[[^\]]*\])*$')

# `meaning` is equal where two declarations go together.
# `place` are the namespaces around it.
Name = collections.namedtuple('Name', 'place name position kind meaning')


def _parameters(text):
  """Of `(const Op& op, int n)`: `const Op&`, `int`."""
  types = []
  for one in text[1:-1].split(','):
    one = one.strip()
    types.append(re.sub(r'[ ]*\b\w+$', '', one) if ' ' in one else one)
  return tuple(types)


def unnamed_names(code):
  """The names that two sources may not both have if they are joined.

  Args:
    code: a source without its comments and strings, laid out by clang-format.
  """
  for space in NAMESPACE.finditer(code):
    inside, start = space.group(1), space.start(1)
    place = tuple(AROUND.findall(code, 0, space.start()))
    for found in DECLARED.finditer(inside):
      head = ' '.join(found.group(1).split())
      at = start + found.start()
      alias = ALIAS.match(inside, found.start())
      named = TYPE.match(head)
      function = FUNCTION.match(head)
      if alias:
        yield Name(place, alias.group(1), at, 'alias',
                   ' '.join(alias.group(0).split()))
      elif named and '(' not in head:
        yield Name(place, named.group(1), at, 'type', None)
      elif function and found.group(2) != '=':
        yield Name(place, function.group(1), at, 'function',
                   _parameters(function.group(2)))
      elif not head.endswith((')', 'const', 'noexcept', 'override')):
        variable = VARIABLE.match(head)
        if variable:
          yield Name(place, variable.group(1), at, 'variable', None)


def clash(one, other):
  """Whether two names of two sources cannot be in one."""
  if (one.place, one.name) != (other.place, other.name):
    return False
  if one.kind != other.kind:
    return True
  if one.kind == 'alias':
    return one.meaning != other.meaning
  return one.kind != 'function' or one.meaning == other.meaning
