#include "runtime/checkpoint/cell_tensor.h"

#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kRankPrefix[] = "@rank.";

}  // namespace

std::vector<int64_t> DimsOf(const Cell& cell) {
  std::vector<int64_t> dims;
  for (const Dim& dim : cell.type.dims) dims.push_back(dim.coefficient());
  return dims;
}

Tensor TensorOf(const Cell& cell, std::string name, std::string bytes) {
  return {std::move(name), cell.type.dtype, DimsOf(cell), std::move(bytes)};
}

std::string NameOfRank(const std::string& cell, int rank) {
  return rank == 0 ? cell : absl::StrCat(kRankPrefix, rank, "/", cell);
}

OfRank ParseNameOfRank(absl::string_view name) {
  OfRank of;
  const size_t slash = name.find('/');
  if (slash == absl::string_view::npos ||
      !absl::ConsumePrefix(&name, kRankPrefix)) {
    return of;
  }
  const size_t digits = slash - std::strlen(kRankPrefix);
  if (!absl::SimpleAtoi(name.substr(0, digits), &of.rank)) of.rank = 0;
  of.cell = std::string(name.substr(digits + 1));
  return of;
}

}  // namespace runtime
}  // namespace halftone
