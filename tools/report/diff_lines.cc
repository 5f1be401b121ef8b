#include "tools/report/diff_lines.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/text/text.h"

namespace halftone {
namespace tools {
namespace {

constexpr size_t kMostCharacters = 100;

// A statement with the entries that it stands in (none: before the entries).
struct Statement {
  std::string text;
  std::vector<std::string> entries;
};

// "momentum.0" of "momentum.0: momentum(...", "cell w" of "cell w : f32[2]".
std::string HeadOf(const std::string& text) {
  return std::string(
      absl::StripAsciiWhitespace(text.substr(0, text.find(": "))));
}

// Statements of a program's text in order, each once.
std::vector<Statement> StatementsOf(const Program& program) {
  std::vector<Statement> statements;
  std::map<std::string, size_t> known;
  std::string entry;
  const std::string text = Print(program);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    // Where there is one alone nothing is said of it.
    if (absl::StartsWith(line, "entry ") && program.entries().size() > 1) {
      entry = std::string(line.substr(6, line.rfind(" {") - 6));
    }
    const std::string content(absl::StripAsciiWhitespace(line));
    const auto [it, is_new] = known.emplace(content, statements.size());
    if (is_new) statements.push_back({content, {}});
    std::vector<std::string>& entries = statements[it->second].entries;
    if (!entry.empty() && (entries.empty() || entries.back() != entry)) {
      entries.push_back(entry);
    }
  }
  return statements;
}

std::string Shortened(absl::Span<const absl::string_view> tokens) {
  std::string text = absl::StrJoin(tokens, " ");
  if (text.size() <= kMostCharacters) return text.empty() ? "nothing" : text;
  return absl::StrCat(text.substr(0, kMostCharacters), "...");
}

// "mu=0.9 -> mu=0.8": the words between those that both begin and end with.
std::string ChangeBetween(const std::string& before, const std::string& after) {
  // The dims of a shape, which no space parts, are one word.
  const auto words = [](const std::string& text) {
    std::vector<absl::string_view> words =
        absl::StrSplit(text, absl::ByAnyChar(" (){}"), absl::SkipEmpty());
    for (absl::string_view& word : words) word = absl::StripSuffix(word, ",");
    return words;
  };
  const std::vector<absl::string_view> a = words(before), b = words(after);
  const size_t least = std::min(a.size(), b.size());
  size_t head = 0, tail = 0;
  while (head < least && a[head] == b[head]) ++head;
  while (tail < least - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) {
    ++tail;
  }
  const auto middle = [&](const std::vector<absl::string_view>& all) {
    return Shortened(
        absl::MakeConstSpan(all).subspan(head, all.size() - tail - head));
  };
  return absl::StrCat(middle(a), " -> ", middle(b));
}

std::string In(const Statement& statement) {
  return statement.entries.empty()
             ? ""
             : absl::StrCat(" (", absl::StrJoin(statement.entries, ", "), ")");
}

// Those of `these` that `others` lack, or have in other entries.
std::vector<Statement> Without(const std::vector<Statement>& these,
                               const std::vector<Statement>& others) {
  std::map<std::string, const Statement*> known;
  for (const Statement& other : others) known[other.text] = &other;
  std::vector<Statement> rest;
  for (const Statement& statement : these) {
    const auto it = known.find(statement.text);
    if (it != known.end() && it->second->entries == statement.entries) continue;
    rest.push_back(statement);
  }
  return rest;
}

}  // namespace

std::vector<std::string> DifferentLines(const Program& before,
                                        const Program& after, size_t most) {
  const std::vector<Statement> old_ones = StatementsOf(before);
  const std::vector<Statement> new_ones = StatementsOf(after);
  std::vector<Statement> gone = Without(old_ones, new_ones);
  std::vector<Statement> come = Without(new_ones, old_ones);
  // By head and entries, in order.
  std::map<std::pair<std::string, std::vector<std::string>>,
           std::deque<const Statement*>>
      successors;
  for (const Statement& is : come) {
    successors[{std::string(HeadOf(is.text)), is.entries}].push_back(&is);
  }
  std::set<const Statement*> taken;
  std::vector<std::string> lines;
  for (const Statement& was : gone) {
    auto& left = successors[{std::string(HeadOf(was.text)), was.entries}];
    if (left.empty()) {
      lines.push_back(absl::StrCat("- ", was.text, In(was)));
      continue;
    }
    const Statement* is = left.front();
    left.pop_front();
    taken.insert(is);
    lines.push_back(absl::StrCat(HeadOf(was.text), ": ",
                                 ChangeBetween(was.text, is->text), In(was)));
  }
  for (const Statement& is : come) {
    if (taken.count(&is) > 0) continue;
    lines.push_back(absl::StrCat("+ ", is.text, In(is)));
  }
  if (lines.empty()) return {"the same lines in another order"};
  if (lines.size() > most) {
    const size_t more = lines.size() - most;
    lines.resize(most);
    lines.push_back(absl::StrCat("and ", more, " more lines"));
  }
  return lines;
}

}  // namespace tools
}  // namespace halftone
