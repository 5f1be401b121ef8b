// How a sample's elements become groups of codes (graph/ops/group_codes.cc).
#ifndef HALFTONE_GRAPH_BASE_GROUP_SHAPE_H_
#define HALFTONE_GRAPH_BASE_GROUP_SHAPE_H_

#include <cstdint>

#include "graph/base/half.h"

namespace halftone {
inline constexpr int64_t kLeastGroup = 32;
inline constexpr int64_t kMostGroup = 1024;

// Elements of a sample in memory order, `group` at a time; the last group has
// what is left. Element i of a group has the bits from bits * (i / m) on of its
// byte i % m, of m bytes: neighbours lie in neighbouring bytes.
struct GroupShape {
  int64_t elements = 0;  // of a sample
  int64_t group = kLeastGroup;
  int bits = 8;

  HT_HOST_DEVICE int64_t groups() const {
    return (elements + group - 1) / group;
  }
  HT_HOST_DEVICE int64_t BytesOf(int64_t n) const { return (n * bits + 7) / 8; }
  // Of a sample. Whole groups are of whole bytes.
  HT_HOST_DEVICE int64_t bytes() const { return BytesOf(elements); }
  HT_HOST_DEVICE int64_t SizeOf(int64_t g) const {
    const int64_t left = elements - g * group;
    return left < group ? left : group;
  }
  HT_HOST_DEVICE int64_t FirstByte(int64_t g) const {
    return g * (group * bits / 8);
  }
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_GROUP_SHAPE_H_
