#include "kernels/cpu/blocked_filter.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "dnnl.hpp"
#include "gtest/gtest.h"
#include "kernels/cpu/onednn.h"

namespace halftone {
namespace kernels {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

struct Format {
  Type type;
  Tag tag;
};

// Whole blocks and parts of them, one channel, an odd number.
const memory::dims kFilters[] = {
    {64, 64, 1, 1}, {128, 96, 3, 3}, {50, 20, 1, 2}, {16, 3, 7, 7},
    {33, 48, 2, 3}, {100, 1, 1, 1},  {7, 5, 3, 1}};

// Numbers that arithmetic leaves as they are: the library may take bf16 through
// f32.
std::vector<char> Numbered(size_t bytes) {
  std::vector<char> numbers(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    numbers[i] = static_cast<char>(0x40 + (i * 37 + i / 61) % 0x3f);
  }
  return numbers;
}

// What the library's own reorder makes of `from`.
std::vector<char> Reordered(const memory::desc& from_desc,
                            std::vector<char> from,
                            const memory::desc& to_desc) {
  std::vector<char> to(to_desc.get_size());
  memory x(from_desc, OnednnEngine(), from.data());
  memory y(to_desc, OnednnEngine(), to.data());
  dnnl::stream stream(OnednnEngine());
  dnnl::reorder(x, y).execute(stream, x, y);
  stream.wait();
  return to;
}

class BlockedFilterTest
    : public ::testing::TestWithParam<std::tuple<Format, memory::dims>> {
 protected:
  BlockedFilterTest()
      : plain_(dims(), type(), Tag::acdb),
        blocked_(dims(), type(), std::get<0>(GetParam()).tag),
        filter_(BlockedFilter::Of(plain_, blocked_)) {}

  const memory::dims& dims() const { return std::get<1>(GetParam()); }
  Type type() const { return std::get<0>(GetParam()).type; }

  memory::desc plain_, blocked_;
  std::optional<BlockedFilter> filter_;
};

TEST_P(BlockedFilterTest, PacksWhatTheLibraryDoes) {
  ASSERT_TRUE(filter_.has_value());
  const std::vector<char> from = Numbered(plain_.get_size());
  const std::vector<char> expected = Reordered(plain_, from, blocked_);
  for (int threads : {1, 2}) {
    std::vector<char> to = Numbered(blocked_.get_size());
    filter_->Pack(from.data(), to.data(), threads);
    EXPECT_TRUE(to == expected) << threads << " threads";
  }
}

TEST_P(BlockedFilterTest, UnpacksWhatItPacks) {
  ASSERT_TRUE(filter_.has_value());
  if (!filter_->CanUnpack()) return;
  const std::vector<char> expected = Numbered(plain_.get_size());
  std::vector<char> blocked(blocked_.get_size()), to(expected.size());
  filter_->Pack(expected.data(), blocked.data(), 1);
  for (int threads : {1, 2}) {
    filter_->Unpack(blocked.data(), to.data(), threads);
    EXPECT_TRUE(to == expected) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, BlockedFilterTest,
    ::testing::Combine(::testing::Values(Format{Type::f32, Tag::Acdb64a},
                                         Format{Type::f32, Tag::Acdb48a},
                                         Format{Type::f32, Tag::Acdb16a},
                                         Format{Type::bf16, Tag::Acdb16a},
                                         Format{Type::bf16, Tag::AcdB64a2b},
                                         Format{Type::bf16, Tag::AcdB48a2b},
                                         Format{Type::bf16, Tag::AcdB16b64a2b},
                                         Format{Type::bf16, Tag::AcdB16b16a2b},
                                         Format{Type::bf16, Tag::ABcd16b16a2b},
                                         Format{Type::bf16, Tag::ABcd16a16b2a},
                                         Format{Type::bf16, Tag::ABcd8a16b2a},
                                         Format{Type::bf16, Tag::BAcd8a16b2a}),
                       ::testing::ValuesIn(kFilters)));

TEST(BlockedFilter, IsOfNoOtherForm) {
  const memory::dims dims = {64, 64, 3, 3};
  const memory::desc plain(dims, Type::f32, Tag::acdb);
  const auto known = [&](const memory::desc& from, const memory::desc& to) {
    return BlockedFilter::Of(from, to).has_value();
  };
  EXPECT_TRUE(known(plain, {dims, Type::f32, Tag::Acdb16a}));
  EXPECT_FALSE(known(plain, plain));
  EXPECT_FALSE(known(plain, {dims, Type::f32, Tag::ABcd16b16a}));
  EXPECT_FALSE(known(plain, {dims, Type::f32, Tag::Acdb8a}));
  EXPECT_FALSE(known(plain, {dims, Type::bf16, Tag::AcdB64a2b}));
  EXPECT_FALSE(
      known({dims, Type::f32, Tag::abcd}, {dims, Type::f32, Tag::Acdb16a}));
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
