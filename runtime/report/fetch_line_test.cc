#include "runtime/report/fetch_line.h"

#include <cmath>
#include <string>
#include <vector>

#include "graph/base/half.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

TEST(FetchLine, NumbersElementsAndHistograms) {
  StepEvent event;
  EXPECT_EQ(FetchLine(event), "");
  event.fetches = {
      {"logits:norm", {12.345f}},
      {"fc.b", {1, -NAN, 0.5f}},
      {"fc.w.grad:hist", {-0.125, 2, 1, 5, 7}, /*histogram=*/true}};
  EXPECT_EQ(FetchLine(event),
            "fetch    logits:norm 12.3, fc.b [1 nan 0.5], fc.w.grad:hist "
            "-0.125 .. 2, 1 not finite");
}

ExponentFacts Facts(const std::vector<float>& values,
                    std::optional<float> scale) {
  ExponentCounts counts;
  for (const float v : values) counts.AddF32({half_internal::Bits(v)});
  ExponentFacts facts;
  facts.histogram = counts.Histogram();
  facts.loss_scaling = scale;
  if (scale.has_value()) facts.scales = counts.Scales(*scale);
  return facts;
}

FetchedValue Exponents(const std::string& name, const ExponentFacts& facts) {
  FetchedValue fetch;
  fetch.name = name;
  fetch.exponents = facts;
  return fetch;
}

TEST(FetchLine, ExponentsOfOneValue) {
  StepEvent event;
  event.fetches = {Exponents("conv1", Facts({0x1p-3f, 3, 0x1p-30f, 1e6f}, {})),
                   Exponents("w", Facts({0, 0}, {}))};
  EXPECT_EQ(FetchLine(event),
            "fetch    conv1 2^-3 .. 2^1, 25 % flushed, 25 % overflowed, w all "
            "0, none flushed, none overflowed");
  event.fetches = {Exponents("w", Facts({1, 0, 0, 0}, {}))};
  EXPECT_EQ(FetchLine(event),
            "fetch    w 2^0, 75 % zero, none flushed, none overflowed");
  event.fetches = {Exponents("w.grad", Facts({1, NAN}, 1024))};
  EXPECT_EQ(FetchLine(event),
            "fetch    w.grad 2^0, none flushed, none overflowed, 1 nan at "
            "scale 1024; 6.1035156e-05 .. 33554432 would do");
}

// What has the loss scale is one clause; the worst is named.
TEST(FetchLine, ExponentsOfManyValues) {
  StepEvent event;
  event.fetches = {
      Exponents("a.grad:exponents", Facts({1, 1, 1, 0x1p-30f}, 1024)),
      Exponents("b.grad:exponents", Facts({1, 0x1p-30f}, 1024)),
      Exponents("conv1:exponents", Facts({1}, {}))};
  event.exponents = Facts({1, 1, 1, 1, 0x1p-30f, 0x1p-30f}, 1024);
  EXPECT_EQ(FetchLine(event),
            "fetch    exponents of 2 values 2^0, 33.3 % flushed (most: b.grad "
            "50 %), none overflowed at scale 1024; 65536 .. 33554432 would do, "
            "conv1:exponents 2^0, none flushed, none overflowed");
}

TEST(FetchLine, ScalesThatDoNotMeet) {
  StepEvent event;
  event.fetches = {Exponents("w", Facts({0x1p-30f, 0x1p15f}, 1024))};
  EXPECT_EQ(FetchLine(event),
            "fetch    w 2^15, 50 % flushed, none overflowed at scale 1024; "
            "none would do: 1024 is the last without overflow, 65536 the first "
            "that keeps 99.9 %");
}

// Of elements that are infinite already, none knows which scale would do; it
// is not one that has just overflowed.
TEST(FetchLine, OverflowAsksForASmallerScale) {
  StepEvent event;
  event.fetches = {Exponents("w", Facts({INFINITY, 1}, 1024))};
  EXPECT_EQ(FetchLine(event),
            "fetch    w 2^0, none flushed, 50 % overflowed at scale 1024; a "
            "smaller one is needed, but none below 6.1035156e-05");
  event.fetches = {Exponents("w", Facts({INFINITY, 0x1p-30f}, 1024))};
  EXPECT_EQ(FetchLine(event),
            "fetch    w none, 50 % flushed, 50 % overflowed at scale 1024; "
            "none would do: 1024 overflows, 65536 is the first that keeps 99.9 "
            "%");
  // Where all have, nothing tells how small it may be.
  event.fetches = {Exponents("w", Facts({INFINITY, NAN}, 1024))};
  EXPECT_EQ(FetchLine(event),
            "fetch    w none, none flushed, 100 % overflowed, 1 nan at scale "
            "1024; a smaller one is needed");
}

TEST(FetchLine, SaysHowManyMore) {
  StepEvent event;
  for (int i = 0; i < 10; ++i) event.fetches.push_back({"v", {1}});
  const std::string line = FetchLine(event);
  EXPECT_EQ(line.substr(line.rfind(',')), ", and 2 more");
}

TEST(FetchCostLine, ShareOfTheRun) {
  RunEnded end;
  EXPECT_EQ(FetchCostLine(end), "");
  end.seconds = 20;
  end.fetches = {0, 0, true};
  EXPECT_EQ(FetchCostLine(end), "");
  end.fetches = {3, 0.08, true};
  EXPECT_EQ(FetchCostLine(end),
            "fetch    exponent histograms: 0.4 % of the run, 80 ms in 3 steps");
  end.fetches->exponents_alone = false;
  EXPECT_EQ(FetchCostLine(end),
            "fetch    what was fetched: 0.4 % of the run, 80 ms in 3 steps");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
