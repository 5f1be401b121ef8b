#include "graph/schema/word_index.h"

#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace halftone {
namespace {

TEST(WordIndex, FindsWordsOfAllLengths) {
  const char* const words[] = {"X",        "Y",        "Out",       "Gradx",
                               "OutGrad",  "LossGrad", "OutGrads1", "OutGrads2",
                               "ExpAvgSq", "xyxy",     ""};
  WordIndex index;
  for (const char* word : words) index.Add(word);
  for (int i = 0; i < static_cast<int>(std::size(words)); ++i) {
    EXPECT_EQ(index.Find(words[i]), i) << words[i];
  }
}

// Of those that begin or end alike, or are as long, none is taken for another.
TEST(WordIndex, FindsNoOther) {
  WordIndex index;
  for (const char* word : {"aa", "abcabc", "LossGrad", "LossGradients"}) {
    index.Add(word);
  }
  for (const char* word :
       {"", "a", "aaa", "ab", "abcbc", "abcacb", "abxabc", "LossGra",
        "LossGrad1", "LossGradient", "LossGradientx", "lossGrad"}) {
    EXPECT_EQ(index.Find(word), -1) << word;
  }
}

// Text that ends where memory does.
TEST(WordIndex, ReadsNothingBehindAWord) {
  WordIndex index;
  index.Add("Grad");
  const std::string text = "GradX";
  EXPECT_EQ(index.Find(absl::string_view(text).substr(0, 4)), 0);
  EXPECT_EQ(index.Find(absl::string_view(text).substr(4)), -1);
}

}  // namespace
}  // namespace halftone
