#include "runtime/collective/check_all_equal.h"

#include <thread>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

std::vector<absl::Status> Check(const std::vector<std::string>& bytes) {
  auto ranks = MakeInProcessCommunicators(static_cast<int>(bytes.size()),
                                          absl::Seconds(60));
  std::vector<absl::Status> statuses(bytes.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < bytes.size(); ++r) {
    threads.emplace_back([&, r] {
      statuses[r] = CheckAllEqual(*ranks[r], "compiled model", bytes[r]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

TEST(CheckAllEqual, EqualIsFine) {
  for (const absl::Status& status : Check({"a", "a", "a"})) {
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(CheckAllEqual, NamesThoseThatDiffer) {
  const std::vector<absl::Status> statuses = Check({"b", "a", "a", "c", "a"});
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kCommunication);
    EXPECT_EQ(status.message(), statuses[0].message());
  }
  const std::string text(statuses[0].message());
  EXPECT_THAT(text, HasSubstr("ranks have different compiled models: ranks 1, "
                              "2 and 4: "));
  EXPECT_THAT(text, HasSubstr("; but rank 0: b; but rank 3: c; give"));
  // Long ones by their hash.
  const std::string model(1234, 'm');
  EXPECT_THAT(std::string(Check({model, "short"})[0].message()),
              HasSubstr("(1,234 bytes)"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
