#include "runtime/report/profile_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

ProfileTable Profile() {
  ProfileTable profile;
  profile.steps = 7;
  profile.step_ms = 50;
  profile.rows = {{"conv forward", 2, 3, 1e6, 4e6, 0.5},
                  {"idle", 48, 0, 0, 0, 0}};
  return profile;
}

TEST(ProfileText, ARowForEachClass) {
  EXPECT_THAT(ProfileText(ProfileTable(), 0), HasSubstr("too few"));
  ProfileTable profile = Profile();
  EXPECT_EQ(
      ProfileText(profile, 0),
      "profile  7 steps of 50 ms, step by step\n"
      "class             ms   share  kernels  GB/s  GFLOP/s  of roofline\n"
      "conv forward   2.000   4.0 %        3   0.5      2.0         25 %\n"
      "idle          48.000  96.0 %        0     -        -            -\n");
  // The device's rates are not known.
  for (ProfileTable::Row& row : profile.rows) row.roofline_ms.reset();
  EXPECT_THAT(ProfileText(profile, 0), HasSubstr("GFLOP/s\n"));
}

ProfileTable::Op OpRow() {
  ProfileTable::Op op;
  op.name = "conv1";
  op.kernel = "conv2d direct";
  op.shape = "f32[2,4,8,8]";
  op.ms = 2;
  op.bytes = 1e6;
  op.flops = 4e6;
  return op;
}

TEST(ProfileText, TheDearestOpsAndWhatWouldHelp) {
  ProfileTable profile = Profile();
  profile.dearest = {OpRow()};
  EXPECT_THAT(ProfileText(profile, 0),
              HasSubstr("dearest  1 op; predicted by nothing: halftone tune "
                        "MODEL measures what this machine reaches\n"
                        "op        ms  share  GB/s  GFLOP/s  kernel\n"
                        "conv1  2.000  4.0 %   0.5      2.0  conv2d direct "
                        "f32[2,4,8,8]\n"));
  profile.dearest[0].shape.clear();
  EXPECT_THAT(ProfileText(profile, 0), HasSubstr("  conv2d direct\n"));
  profile.measured = true;
  profile.dearest[0].predicted_ms = 1.25;
  profile.dearest[0].roofline_ms = 1;
  profile.dearest[0].bound = "flops";
  profile.dearest[0].hint = "in f32 by BLACK_LIST: --white conv2d";
  EXPECT_THAT(
      ProfileText(profile, 0),
      HasSubstr(
          "dearest  1 op; predicted by rates that halftone tune measured\n"
          "op        ms  share  GB/s  GFLOP/s  predicted ms  of roofline  "
          "bound  kernel\n"
          "conv1  2.000  4.0 %   0.5      2.0         1.250         50 %  "
          "flops  conv2d direct\n"
          "try      conv1: in f32 by BLACK_LIST: --white conv2d\n"));
}

TEST(ProfileText, WrapsAtTheWidth) {
  ProfileTable profile = Profile();
  profile.dearest = {OpRow()};
  profile.dearest[0].predicted_ms = profile.dearest[0].roofline_ms = 1;
  EXPECT_THAT(ProfileText(profile, 40),
              HasSubstr("op        ms  share  GB/s  GFLOP/s\n"
                        "conv1  2.000  4.0 %   0.5      2.0\n"
                        "\n"
                        "op     predicted ms  of roofline  bound\n"
                        "conv1         1.000         50 %\n"
                        "\n"
                        "op     kernel\n"
                        "conv1  conv2d direct f32[2,4,8,8]\n"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
