#include "passes/options/options_testing.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace passes {

absl::StatusOr<Options> Resolve(const std::string& content,
                                const std::vector<Override>& overrides,
                                const std::string& file) {
  HT_ASSIGN_OR_RETURN(const StrategyFile strategy,
                      ParseStrategy(content, file));
  return ResolveOptions(strategy, overrides);
}

Options MustResolve(const std::string& content,
                    const std::vector<Override>& overrides) {
  absl::StatusOr<Options> options = Resolve(content, overrides);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *std::move(options) : Options();
}

void ExpectError(const std::string& content, const std::string& message,
                 ExitCode code, const std::vector<Override>& overrides) {
  SCOPED_TRACE(content);
  const absl::Status status = Resolve(content, overrides).status();
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(message));
  EXPECT_EQ(ExitCodeOf(status), code);
}

}  // namespace passes
}  // namespace halftone
