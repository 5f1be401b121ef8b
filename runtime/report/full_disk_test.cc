// What logs do while they cannot be written.
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>
#include <vector>

#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/report/metrics_log.h"
#include "runtime/report/tensorboard_log.h"
#include "runtime/report/testing/log_files.h"

namespace halftone {
namespace runtime {
namespace {

using nlohmann::json;

// No file of this process may grow over `bytes` while it lives: a full disk.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_;
  sighandler_t handler_;
};

TEST(FullDisk, LinesOfMetricsWaitForRoom) {
  const std::string path = NewPath();
  auto log = MetricsLog::Open(path, -1);
  ASSERT_TRUE(log.ok()) << log.status();
  const auto write = [&log](int64_t step) {
    (*log)->On(Step(step));
    return (*log)->Flush();
  };
  ASSERT_TRUE(write(1).ok());
  {
    // Half of the second line fits.
    const FileLimit limit(ReadFile(path)->size() * 3 / 2);
    const absl::Status full = write(2);
    EXPECT_NE(full.message().find(path), absl::string_view::npos) << full;
    EXPECT_FALSE(write(3).ok());
  }
  ASSERT_TRUE(write(4).ok());
  const std::vector<json> events = JsonLines(path);
  ASSERT_EQ(events.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(events[i]["step"], i + 1);
}

TEST(FullDisk, RecordsOfTensorBoardWaitForRoom) {
  const std::string whole = NewPath(), cut = NewPath();
  auto one = TensorBoardLog::Create(whole), other = TensorBoardLog::Create(cut);
  ASSERT_TRUE(one.ok() && other.ok());
  for (int step = 1; step < 4; ++step) {
    (*one)->On(Step(step));
    (*other)->On(Step(step));
    const FileLimit limit(60);
    EXPECT_FALSE((*other)->Flush().ok());
  }
  ASSERT_TRUE((*one)->Flush().ok());
  ASSERT_TRUE((*other)->Flush().ok());
  const auto size = [](const std::string& directory) {
    return std::filesystem::file_size(
        std::filesystem::directory_iterator(directory)->path());
  };
  EXPECT_EQ(size(whole), size(cut));  // times differ
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
