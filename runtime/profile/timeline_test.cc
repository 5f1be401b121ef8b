#include "runtime/profile/timeline.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMegabyte = 1'000'000;

// A millisecond per megabyte that is sent, and 0.1 ms a step of a ring.
Link Slow() {
  Link link;
  link.name = "slow";
  link.bandwidth = 1e9;
  link.latency = 1e-4;
  return link;
}
Topology Ranks(int ranks, int per_machine) {
  return {ranks, per_machine, Slow(), Slow()};
}

TEST(CollectiveSeconds, OfARing) {
  const Topology four = Ranks(4, 4);
  const auto of = [&](Step::Kind kind) {
    return CollectiveSeconds(kind, kMegabyte, four);
  };
  // 2 * 3 / 4 of a megabyte and six steps; half of both.
  EXPECT_NEAR(of(Step::Kind::kAllReduce), 1.5e-3 + 6e-4, 1e-12);
  EXPECT_NEAR(of(Step::Kind::kAllGather), 0.75e-3 + 3e-4, 1e-12);
  EXPECT_EQ(CollectiveSeconds(Step::Kind::kAllReduce, 1e6, Ranks(1, 1)), 0);
}

TEST(CollectiveSeconds, TheSlowestLinkCounts) {
  Topology topology = Ranks(16, 8);
  topology.inside.bandwidth = 1e12;
  topology.inside.latency = 0;
  const double ring = 2 * 15.0 / 16 * 1e-3 + 2 * 1e-4;
  EXPECT_NEAR(CollectiveSeconds(Step::Kind::kAllReduce, 1e6, topology), ring,
              1e-12);
  // On one machine nobody sees the network.
  topology.per_machine = 16;
  EXPECT_LT(CollectiveSeconds(Step::Kind::kAllReduce, 1e6, topology), 2e-6);
}

// A ring of many machines waits for its latencies, a tree for few.
TEST(CollectiveSeconds, ATreeWhereThereAreManyMachines) {
  const double seconds =
      CollectiveSeconds(Step::Kind::kAllReduce, 1000, Ranks(1024, 1));
  EXPECT_NEAR(seconds, 2 * (10 * 1e-4 + 1e-6), 1e-12);
}

// Sums that are parts on each machine cross the network once for all of them.
TEST(CollectiveSeconds, ByNodes) {
  Topology topology = Ranks(16, 8);
  topology.between.bandwidth = 1e8;
  topology.between.latency = 1e-3;
  topology.by_nodes = true;
  const double inside = 7.0 / 8 * 1e-3 + 7 * 1e-4;
  const double between = 2 * (1.0 / 2 * 1e-2 + 1e-3);
  const Step::Kind sum = Step::Kind::kAllReduce;
  EXPECT_NEAR(CollectiveSeconds(sum, 1e6, topology), 2 * inside + between,
              1e-12);
  // What is gathered alone goes as ever, and so do sums of one machine.
  Topology at_once = topology;
  at_once.by_nodes = false;
  const Step::Kind gather = Step::Kind::kAllGather;
  EXPECT_EQ(CollectiveSeconds(gather, 1e6, topology),
            CollectiveSeconds(gather, 1e6, at_once));
  topology.per_machine = at_once.per_machine = 16;
  EXPECT_EQ(CollectiveSeconds(sum, 1e6, topology),
            CollectiveSeconds(sum, 1e6, at_once));
}

TEST(CollectiveSeconds, SmallOnesByTheQuickWay) {
  Topology topology = Ranks(2, 2);
  topology.inside.quick_latency = 1e-6;
  topology.inside.quick_share = 0.25;
  EXPECT_NEAR(CollectiveSeconds(Step::Kind::kAllReduce, 1000, topology),
              2 * 1e-6 + 4e-6, 1e-12);
  EXPECT_NEAR(CollectiveSeconds(Step::Kind::kAllReduce, 1e6, topology),
              1e-3 + 2e-4, 1e-12);
}

TEST(ParseLink, ReadsWhatIsPrinted) {
  Link link = Slow();
  link.start = 5e-6;
  const auto read = ParseLink(PrintLink(link), "link.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->name, "slow");
  EXPECT_EQ(read->bandwidth, 1e9);
  EXPECT_NEAR(read->start, 5e-6, 1e-12);
  EXPECT_NEAR(read->latency, 1e-4, 1e-12);
  const auto bad = ParseLink(
      R"({"schema":1,"name":"x","bandwidth":0,"start_ns":1,"latency_ns":1})",
      "link.json");
  EXPECT_EQ(ExitCodeOf(bad.status()), ExitCode::kModel);
  EXPECT_THAT(std::string(bad.status().message()),
              HasSubstr("link.json: bandwidth"));
  EXPECT_FALSE(ParseLink("[]", "link.json").ok());
}

// forward, backward of the last layer, its bucket, backward of the first
// layer, its bucket, the update.
class TimelineTest : public ::testing::Test {
 protected:
  TimelineTest() {
    plan_.world_size = 2;
    Add("forward", Step::Kind::kZero, 0);
    Add("last.grad", Step::Kind::kZero, 0).records = 0;
    Step& first = Add("bucket.0", Step::Kind::kAllReduce, 0);
    first.stream = StreamKind::kCommunicate;
    first.waits = {0};
    Add("first.grad", Step::Kind::kZero, 4 * kMegabyte).records = 1;
    Step& second = Add("bucket.1", Step::Kind::kAllReduce, 4 * kMegabyte);
    second.stream = StreamKind::kCommunicate;
    second.waits = {1};
    second.records = 2;
    Add("update", Step::Kind::kZero, 8 * kMegabyte).waits = {2};
    for (Step& step : plan_.steps) {
      if (step.name == "forward" || step.name == "update") {
        step.outputs[0].arena = ArenaKind::kTemporary;
      }
    }
    // 2.1 ms a bucket.
    request_.topology = Ranks(2, 2);
    request_.topology.inside.latency = 5e-5;
    request_.measured.emplace();
    for (const auto& [name, ms] :
         {std::pair("forward", 1.0), std::pair("last.grad", 1.0),
          std::pair("first.grad", 3.0), std::pair("update", 0.5)}) {
      request_.measured->ms[{name, false}] = {{ms}};
    }
    request_.measured->host_ms = {0.25};
  }
  Step& Add(const char* name, Step::Kind kind, int64_t offset) {
    Step step;
    step.name = name;
    step.kind = kind;
    step.outputs = {{ArenaKind::kCommunication, offset, 2 * kMegabyte}};
    plan_.steps.push_back(step);
    return plan_.steps.back();
  }

  Plan plan_;
  TimelineRequest request_;
};

TEST_F(TimelineTest, NamesWhatIsExposed) {
  const Timeline timeline = TimelineOf(plan_, request_);
  EXPECT_THAT(timeline.unknown, IsEmpty());
  ASSERT_THAT(timeline.communications, SizeIs(2));
  // The first one runs beside the backward of the first layer, all of it.
  const Communication& first = timeline.communications[0];
  EXPECT_NEAR(first.ready_ms, 2, 1e-9);
  EXPECT_NEAR(first.begin_ms, 2, 1e-9);
  EXPECT_NEAR(first.end_ms, 4.1, 1e-9);
  EXPECT_NEAR(first.exposed_ms, 0, 1e-9);
  EXPECT_EQ(first.first, "first.grad");
  EXPECT_EQ(first.last, "first.grad");
  EXPECT_TRUE(first.gradients);
  EXPECT_EQ(first.bytes, 2 * kMegabyte);
  // Nothing is left to be computed beside the second.
  const Communication& second = timeline.communications[1];
  EXPECT_NEAR(second.ready_ms, 5, 1e-9);
  EXPECT_NEAR(second.exposed_ms, 2.1, 1e-9);
  EXPECT_EQ(second.first, "");
  EXPECT_NEAR(timeline.compute_ms, 5.5, 1e-9);
  EXPECT_NEAR(timeline.exposed_ms, 2.1, 1e-9);
  EXPECT_NEAR(timeline.communication_ms, 4.2, 1e-9);
  EXPECT_NEAR(timeline.ms, 5.5 + 2.1 + 0.25, 1e-9);
}

TEST_F(TimelineTest, OneByOneWithoutOverlap) {
  request_.overlap = false;
  const Timeline timeline = TimelineOf(plan_, request_);
  EXPECT_NEAR(timeline.exposed_ms, 4.2, 1e-9);
  EXPECT_NEAR(timeline.communications[0].exposed_ms, 2.1, 1e-9);
  EXPECT_NEAR(timeline.spans[5].end, 9.7, 1e-9);
}

TEST_F(TimelineTest, FewerCoresMakeComputingLonger) {
  request_.slower = 2;
  const Timeline timeline = TimelineOf(plan_, request_);
  EXPECT_NEAR(timeline.compute_ms, 11, 1e-9);
  EXPECT_NEAR(timeline.host_ms, 0.5, 1e-9);
  EXPECT_NEAR(timeline.communication_ms, 4.2, 1e-9);
}

TEST_F(TimelineTest, CollectivesAreMadeOneByOne) {
  request_.topology.inside.bandwidth = 0.5e9;  // 4.1 ms a bucket
  const Timeline timeline = TimelineOf(plan_, request_);
  EXPECT_NEAR(timeline.communications[1].ready_ms, 5, 1e-9);
  EXPECT_NEAR(timeline.communications[1].begin_ms, 6.1, 1e-9);
  EXPECT_NEAR(timeline.communications[0].exposed_ms, 1.1, 1e-9);
}

TEST_F(TimelineTest, SaysWhatNobodyHasMeasured) {
  request_.measured->ms.erase({"update", false});
  const Timeline timeline = TimelineOf(plan_, request_);
  EXPECT_THAT(timeline.unknown, ElementsAre("update"));
}

TEST_F(TimelineTest, IsReadBackFromItsTrace) {
  const Timeline timeline = TimelineOf(plan_, request_);
  const auto measured =
      ParseTrace(TraceJson(TraceOf(plan_, timeline), 0), "trace.json");
  ASSERT_TRUE(measured.ok()) << measured.status();
  const SlowestSteps steps = SlowestOf(2, plan_, *measured);
  EXPECT_NEAR(steps.ms[3], 3, 1e-9);
  EXPECT_NEAR(steps.ms[2], 2.1, 1e-9);
}

// Three traced steps: forward and first.grad took 1, 2 and 9 ms, the host 1.
TEST_F(TimelineTest, RanksWaitForTheSlowest) {
  MeasuredSteps& measured = *request_.measured;
  measured.ms.clear();
  measured.ms[{"forward", false}] = {{1, 9, 2}};
  measured.ms[{"last.grad", false}] = {{1, 1, 1}};
  measured.ms[{"first.grad", false}] = {{2, 1, 9}};
  measured.ms[{"update", false}] = {{1, 1, 1}};
  measured.host_ms = {1, 1, 1};
  const SlowestSteps one = SlowestOf(1, plan_, measured);
  EXPECT_THAT(one.ms, ElementsAre(2, 1, -1, 2, -1, 1));
  EXPECT_EQ(one.host_ms, 1);
  // Half of all pairs of 4, 12 and 5, and of 2, 1 and 9, lie below these.
  const double beyond = 2 * std::sqrt(0.5) - 1;
  const double update_to_last = (5 + beyond * 7) / 5;
  const double first = 2 + beyond * 7;
  const SlowestSteps two = SlowestOf(2, plan_, measured);
  EXPECT_NEAR(two.ms[0], 2 * update_to_last, 1e-9);
  EXPECT_NEAR(two.ms[1], update_to_last, 1e-9);
  EXPECT_NEAR(two.ms[3], first, 1e-9);
  EXPECT_NEAR(two.ms[5], update_to_last, 1e-9);
  EXPECT_NEAR(two.host_ms, update_to_last, 1e-9);
  EXPECT_NEAR(TimelineOf(plan_, request_).compute_ms,
              4 * update_to_last + first, 1e-9);
}

TEST(ParseTrace, KeepsEveryStep) {
  std::vector<TraceEvent> events;
  for (double ms : {1.0, 9.0, 2.0}) {
    events.push_back({"a", "norm", "compute", 0, ms});
    events.push_back({"a", "norm", "compute", 0, 10 * ms});
    events.push_back({"step", "step", "steps", 0, 11 * ms + 0.5});
  }
  const auto measured = ParseTrace(TraceJson(events, 0), "trace.json");
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_THAT(
      measured->ms.at({"a", false}),
      ElementsAre(ElementsAre(DoubleNear(1, 1e-9), DoubleNear(9, 1e-9),
                              DoubleNear(2, 1e-9)),
                  ElementsAre(DoubleNear(10, 1e-9), DoubleNear(90, 1e-9),
                              DoubleNear(20, 1e-9))));
  EXPECT_THAT(measured->host_ms, Each(DoubleNear(0.5, 1e-9)));
  for (const char* bad : {"{}", "[]", R"({"traceEvents":[]})"}) {
    EXPECT_EQ(ExitCodeOf(ParseTrace(bad, "trace.json").status()),
              ExitCode::kModel);
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
