// What `halftone replay` prints.
#ifndef HALFTONE_TOOLS_COMPARE_REPLAY_REPORT_H_
#define HALFTONE_TOOLS_COMPARE_REPLAY_REPORT_H_

#include <string>

#include "graph/io/compiled_model.h"
#include "runtime/compare/replay.h"

namespace halftone {
namespace tools {

struct ReplayFacts {
  std::string path;
  const runtime::CapsuleFacts* capsule = nullptr;
  const CompiledModel* model = nullptr;
  const runtime::TrainConfig* config = nullptr;  // FillConfig's
  const runtime::Replayed* replayed = nullptr;
};

std::string ReplayText(const ReplayFacts& facts);
std::string ReplayJson(const ReplayFacts& facts);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMPARE_REPLAY_REPORT_H_
