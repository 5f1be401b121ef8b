#include "tools/search/op_precisions.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::ElementsAre;

TEST(OpPrecisionsTest, AddsNamesOnce) {
  proto::Amp amp;
  amp.add_custom_black_opnames("head/*");
  amp.add_custom_black_opnames("b");
  SetOpPrecisions({{"a", true}, {"b", false}, {"c", false}},
                  {"a", "b", "c", "head/x"}, &amp);
  EXPECT_THAT(amp.custom_white_opnames(), ElementsAre("a"));
  EXPECT_THAT(amp.custom_black_opnames(), ElementsAre("head/*", "b", "c"));
}

TEST(OpPrecisionsTest, AGlobThatSaysTheContraryIsNarrowed) {
  proto::Amp amp;
  amp.add_custom_white_opnames("layer*");
  amp.add_custom_black_opnames("layer9");
  SetOpPrecisions({{"layer2", false}, {"layer9", true}},
                  {"layer1", "layer2", "layer3", "layer9"}, &amp);
  EXPECT_THAT(amp.custom_white_opnames(),
              ElementsAre("layer1", "layer3", "layer9"));
  EXPECT_THAT(amp.custom_black_opnames(), ElementsAre("layer2"));
}

}  // namespace
}  // namespace tools
}  // namespace halftone
