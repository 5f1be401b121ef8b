#include "tools/search/smallest_set.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "graph/base/error.h"

namespace halftone {
namespace tools {
namespace {

class Finder {
 public:
  Finder(int n, Holds holds) : rest_(n), holds_(holds) {
    std::iota(rest_.begin(), rest_.end(), 0);
    answers_[rest_] = true;
  }

  absl::StatusOr<std::vector<int>> Find();

 private:
  absl::StatusOr<bool> Ask(std::vector<int> members);
  // The needed ones and the first `count` of the rest.
  std::vector<int> With(int count) const;
  absl::Status AddNeeded();
  absl::StatusOr<bool> DropOne();

  std::vector<int> rest_;    // with the needed ones the property holds
  std::vector<int> needed_;  // in the order found
  Holds holds_;
  std::map<std::vector<int>, bool> answers_;
};

absl::StatusOr<bool> Finder::Ask(std::vector<int> members) {
  std::sort(members.begin(), members.end());
  const auto known = answers_.find(members);
  if (known != answers_.end()) return known->second;
  HT_ASSIGN_OR_RETURN(const bool answer, holds_(members));
  answers_[std::move(members)] = answer;
  return answer;
}

std::vector<int> Finder::With(int count) const {
  std::vector<int> members = needed_;
  members.insert(members.end(), rest_.begin(), rest_.begin() + count);
  return members;
}

// The last member of the shortest beginning of the rest that is enough.
absl::Status Finder::AddNeeded() {
  int fails = 0, enough = static_cast<int>(rest_.size());
  while (enough - fails > 1) {
    const int middle = fails + (enough - fails) / 2;
    HT_ASSIGN_OR_RETURN(const bool answer, Ask(With(middle)));
    (answer ? enough : fails) = middle;
  }
  needed_.push_back(rest_[enough - 1]);
  rest_.resize(enough - 1);
  return absl::OkStatus();
}

// Whether there was one that is not needed beside the others.
absl::StatusOr<bool> Finder::DropOne() {
  for (size_t i = 0; i < needed_.size(); ++i) {
    std::vector<int> others = needed_;
    others.erase(others.begin() + i);
    HT_ASSIGN_OR_RETURN(const bool answer, Ask(others));
    if (!answer) continue;
    needed_ = std::move(others);
    return true;
  }
  return false;
}

absl::StatusOr<std::vector<int>> Finder::Find() {
  while (true) {
    HT_ASSIGN_OR_RETURN(const bool enough, Ask(needed_));
    if (enough || rest_.empty()) break;
    HT_RETURN_IF_ERROR(AddNeeded());
  }
  while (true) {
    HT_ASSIGN_OR_RETURN(const bool dropped, DropOne());
    if (!dropped) break;
  }
  std::sort(needed_.begin(), needed_.end());
  return needed_;
}

}  // namespace

absl::StatusOr<std::vector<int>> SmallestSet(int n, Holds holds) {
  return Finder(n, holds).Find();
}

}  // namespace tools
}  // namespace halftone
