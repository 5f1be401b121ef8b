#include "runtime/data/sample_marks.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/stable_hasher.h"
#include "graph/base/text.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kMostBlocks = 256;
constexpr int64_t kMost = int64_t{1} << 50;  // sums of two are numbers still

std::string HashBlock(int64_t first, int64_t end, KeyOf key) {
  StableHasher hasher;
  for (int64_t i = first; i < end; ++i) {
    const uint64_t of_sample = key(i);
    char bytes[sizeof(of_sample)];
    std::memcpy(bytes, &of_sample, sizeof(bytes));
    hasher.Append(absl::string_view(bytes, sizeof(bytes)));
  }
  return Hex64(hasher.hash());
}

struct Marks {
  int64_t samples = 0, block = 0;
  std::vector<absl::string_view> hashes;
};

bool Parse(absl::string_view text, Marks* marks) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ' ');
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &marks->samples) ||
      !absl::SimpleAtoi(parts[1], &marks->block)) {
    return false;
  }
  marks->hashes = absl::StrSplit(parts[2], ',');
  const auto blocks = static_cast<int64_t>(marks->hashes.size());
  return marks->samples > 0 && marks->samples <= kMost && marks->block > 0 &&
         marks->block <= kMost &&
         (marks->samples - 1) / marks->block + 1 == blocks;
}

}  // namespace

std::string MarkSamples(int64_t samples, KeyOf key) {
  const int64_t block = std::max<int64_t>(1, (samples - 1) / kMostBlocks + 1);
  std::vector<std::string> hashes;
  for (int64_t first = 0; first < samples; first += block) {
    hashes.push_back(HashBlock(first, std::min(first + block, samples), key));
  }
  return absl::StrCat(samples, " ", block, " ", absl::StrJoin(hashes, ","));
}

absl::Status CheckMarks(absl::string_view text, int64_t samples, KeyOf key,
                        NameOf name) {
  Marks marks;
  if (!Parse(text, &marks)) {
    return ModelError("what it says of its data is damaged: ",
                      text.substr(0, 100));
  }
  int64_t first = 0, end = 0;
  for (const absl::string_view hash : marks.hashes) {
    end = std::min(first + marks.block, std::min(samples, marks.samples));
    // A block of which some are gone, or more have come, is another one.
    const int64_t was = std::min(first + marks.block, marks.samples);
    if (end != was || HashBlock(first, end, key) != hash) break;
    first = end;
  }
  if (first == marks.samples && samples == marks.samples) {
    return absl::OkStatus();
  }
  end = std::min(first + marks.block, samples);
  const std::string where =
      first >= samples
          ? absl::StrCat("those behind ", name(samples - 1), " are gone")
      : end - first > 1
          ? absl::StrCat("the first that differs is among ", name(first),
                         " to ", name(end - 1))
          : absl::StrCat("the first that differs is ", name(first));
  return ModelError("it was trained on ", WithCommas(marks.samples),
                    " samples, now there are ", WithCommas(samples), ": ",
                    where, "; resume with the data of that run, or take its ",
                    "parameters into another with --init");
}

}  // namespace runtime
}  // namespace halftone
