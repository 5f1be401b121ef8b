#include "graph/targets/links.h"

#include <set>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Links, HaveNamesOfTheirOwnAndRates) {
  std::set<std::string> names;
  for (const Link& link : Links()) {
    EXPECT_TRUE(names.insert(link.name).second)
        << link.name << " is there twice: a target whose link links.cc has "
        << "names it alone (DeviceLink::reached = 0)";
    EXPECT_GT(link.bandwidth, 1e8) << link.name;
    EXPECT_GT(link.start + link.latency, 0) << link.name;
    EXPECT_LT(link.start, 1e-3) << link.name;
    EXPECT_FALSE(link.text.empty()) << link.name;
  }
}

TEST(Links, BelowWhatDataSheetsSay) {
  EXPECT_NEAR(LinkNamed("nvlink3", "")->bandwidth, 235e9, 1);
  EXPECT_LT(LinkNamed("nvlink4", "")->bandwidth, 450e9);
  EXPECT_LT(LinkNamed("pcie4", "")->bandwidth, 31.5e9);
  EXPECT_LT(LinkNamed("100gbe", "")->bandwidth, 12.5e9);
  EXPECT_LT(LinkNamed("ndr", "")->bandwidth, 50e9);
}

TEST(LinkNamed, TakesSeveralAdapters) {
  const Link one = *LinkNamed("hdr", "");
  const Link eight = *LinkNamed("8xhdr", "");
  EXPECT_EQ(eight.bandwidth, 8 * one.bandwidth);
  EXPECT_EQ(eight.latency, one.latency);
  EXPECT_EQ(eight.name, "8xhdr");
}

TEST(LinkNamed, NamesTheNearest) {
  const auto link = LinkNamed("pcie99", "--link ");
  EXPECT_EQ(ExitCodeOf(link.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(link.status().message()),
              HasSubstr("--link pcie99: no such link; nearest: pcie"));
  EXPECT_FALSE(LinkNamed("0xhdr", "").ok());
  EXPECT_FALSE(LinkNamed("x", "").ok());
}

TEST(LinkNames, AreOfOneKind) {
  const std::string networks = LinkNames(/*networks=*/true);
  EXPECT_THAT(networks, HasSubstr("100gbe, "));
  EXPECT_THAT(networks, HasSubstr("hdr, "));
  const std::string inside = LinkNames(/*networks=*/false);
  for (const Target& target : Targets()) {
    EXPECT_THAT(inside, HasSubstr(target.inside.name));
    EXPECT_THAT(networks, Not(HasSubstr(target.inside.name)));
  }
}

TEST(LinkInside, IsThatOfTheTarget) {
  EXPECT_EQ(LinkInside(CpuTarget()).name, "memory");
  EXPECT_EQ(LinkInside(*FindTarget("sm_80")).name, "nvlink3");
  EXPECT_EQ(LinkInside(*FindTarget("sm_90")).name, "nvlink4");
  for (const Target& target : Targets()) {
    const Link& link = LinkInside(target);
    EXPECT_EQ(link.name, target.inside.name) << target.name;
    if (target.inside.reached == 0) continue;
    EXPECT_LE(target.inside.reached, 1) << target.name;
    for (const DeviceRates& device : target.devices) {
      EXPECT_LE(link.bandwidth, device.link) << device.name;
    }
  }
}

}  // namespace
}  // namespace halftone
