#include "tests/cli/verbs_testing.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace halftone {

std::string Temp(const std::string& name) {
  static int names = 0;
  return absl::StrCat(::testing::TempDir(), "/", getpid(), "-", names++, name);
}

Result Halftone(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tools/halftone");
  return RunProgram(arguments);
}

void CompileConvnet(const std::string& path) {
  const Result result =
      Halftone({"compile", "models/mnist_convnet.pbtxt", "--strategy",
                "models/mnist_o1.pbtxt", "-o", path});
  ASSERT_EQ(result.exit_code(), 0) << result.err;
}

const std::string& Convnet() {
  static const std::string& path = *new std::string([] {
    const std::string path = Temp(".htc");
    CompileConvnet(path);
    return path;
  }());
  return path;
}

nlohmann::json MustParse(const Result& result) {
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  nlohmann::json object = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_TRUE(object.is_object()) << result.out;
  if (object.is_object()) {
    EXPECT_EQ(object["schema"], 1);
  }
  return object;
}

}  // namespace halftone
