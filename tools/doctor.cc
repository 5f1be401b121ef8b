// halftone doctor: what this machine can do and what it lacks.
#include <memory>
#include <vector>

#include "graph/base/error.h"
#include "tools/common/command_line.h"
#include "tools/common/show_answer.h"
#include "tools/report/doctor_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {

void AddDoctor(Verb app, Outcome* outcome) {
  auto json = std::make_shared<bool>(false);
  Verb verb = app.AddVerb(
      "doctor", "what this machine can do, and what it lacks",
      "examples:\n"
      "  halftone doctor\n"
      "  halftone doctor --json\n\n"
      "Processor, memory, GPUs and their libraries, targets, disk, network:\n"
      "what is here, and how to get what is not. Exits with 9 if training\n"
      "cannot work here at all.");
  verb.AddSwitch("--json", json.get(), "one JSON object");
  verb.SetRun([json, outcome] {
    const std::vector<Finding> findings = ExamineMachine();
    ShowAnswer(*json ? DoctorJson(findings) : DoctorText(findings), *json);
    if (CanTrain(findings)) return;
    outcome->status = DeviceError(
        "doctor: this machine cannot train: see what is \"broken\" above");
  });
}

}  // namespace tools
}  // namespace halftone
