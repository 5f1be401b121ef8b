#include "tools/search/guilty_sets.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "graph/base/error.h"
#include "tools/search/smallest_set.h"

namespace halftone {
namespace tools {
namespace {

// Asks nothing twice.
class Answers {
 public:
  explicit Answers(Measured measured) : measured_(measured) {}

  void Know(std::vector<int> bad, const Verdict& verdict) {
    known_[std::move(bad)] = verdict;
  }
  absl::StatusOr<Verdict> Of(const std::vector<int>& bad) {
    const auto known = known_.find(bad);
    if (known != known_.end()) return known->second;
    HT_ASSIGN_OR_RETURN(const Verdict verdict, measured_(bad));
    known_[bad] = verdict;
    return verdict;
  }

 private:
  Measured measured_;
  std::map<std::vector<int>, Verdict> known_;
};

std::vector<int> Without(const std::vector<int>& these,
                         const std::vector<int>& those) {
  std::vector<int> rest;
  std::set_difference(these.begin(), these.end(), those.begin(), those.end(),
                      std::back_inserter(rest));
  return rest;
}

// The smallest set among these, all of which bad miss the tolerance.
absl::StatusOr<GuiltySet> OneSet(const std::vector<int>& among,
                                 Answers* answers) {
  const auto members_at = [&among](const std::vector<int>& positions) {
    std::vector<int> members;
    for (const int position : positions) members.push_back(among[position]);
    return members;
  };
  GuiltySet set;
  HT_ASSIGN_OR_RETURN(
      const std::vector<int> positions,
      SmallestSet(static_cast<int>(among.size()),
                  [&](const std::vector<int>& bad) -> absl::StatusOr<bool> {
                    HT_ASSIGN_OR_RETURN(const Verdict verdict,
                                        answers->Of(members_at(bad)));
                    return verdict.misses;
                  }));
  set.members = members_at(positions);
  HT_ASSIGN_OR_RETURN(set.verdict, answers->Of(set.members));
  return set;
}

}  // namespace

absl::StatusOr<GuiltySets> FindGuiltySets(int n, const Verdict& bad,
                                          Measured measured, Cured cured) {
  Answers answers(measured);
  std::vector<int> rest(n), good;
  std::iota(rest.begin(), rest.end(), 0);
  answers.Know(rest, bad);
  GuiltySets found;
  HT_ASSIGN_OR_RETURN(found.cure, answers.Of({}));
  if (found.cure.misses) return found;
  while (true) {
    HT_ASSIGN_OR_RETURN(GuiltySet set, OneSet(rest, &answers));
    rest = Without(rest, set.members);
    good.insert(good.end(), set.members.begin(), set.members.end());
    std::sort(good.begin(), good.end());
    found.sets.push_back(std::move(set));
    HT_ASSIGN_OR_RETURN(found.cure, cured(good));
    if (!found.cure.misses) return found;
    // What settings choose for the others may be worse than what they are in
    // the bad program.
    HT_ASSIGN_OR_RETURN(found.cure, answers.Of(rest));
    found.needs_all = !found.cure.misses;
    if (found.needs_all) return found;
  }
}

}  // namespace tools
}  // namespace halftone
