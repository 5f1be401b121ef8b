#include "tools/report/doctor_report.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace tools {
namespace {

using ::testing::HasSubstr;
using State = Finding::State;

TEST(Doctor, ExaminesThisMachine) {
  const std::vector<Finding> findings = ExamineMachine();
  EXPECT_TRUE(CanTrain(findings)) << DoctorText(findings);
  for (const char* what : {"binary", "cpu", "cores", "memory", "gpu code",
                           "targets", "temporary files", "loopback"}) {
    const auto found = std::find_if(
        findings.begin(), findings.end(),
        [what](const Finding& finding) { return finding.what == what; });
    ASSERT_NE(found, findings.end()) << what;
    EXPECT_NE(found->found, "") << what;
    if (found->state != State::kOk) {
      EXPECT_NE(found->advice, "") << what;
    }
  }
}

TEST(Doctor, AFolderThatCannotBeWrittenIsBroken) {
  ASSERT_EQ(setenv("TMPDIR", "/nowhere/at/all", 1), 0);
  const std::vector<Finding> findings = ExamineMachine();
  ASSERT_EQ(unsetenv("TMPDIR"), 0);
  EXPECT_FALSE(CanTrain(findings));
  EXPECT_THAT(DoctorText(findings),
              HasSubstr("broken  temporary files   /nowhere/at/all: cannot be "
                        "written: No such file or directory: set TMPDIR"));
}

TEST(Doctor, TextAndJson) {
  const std::vector<Finding> findings = {
      {State::kOk, "cpu", "EPYC\x1b[31m", ""},
      {State::kAbsent, "gpu", "no driver", "install it"}};
  EXPECT_EQ(DoctorText(findings),
            "ok      cpu               EPYC\\u001b[31m\n"
            "absent  gpu               no driver: install it\n");
  const auto json = nlohmann::json::parse(DoctorJson(findings), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["findings"][1]["state"], "absent");
  EXPECT_EQ(json["findings"][1]["advice"], "install it");
}

}  // namespace
}  // namespace tools
}  // namespace halftone
