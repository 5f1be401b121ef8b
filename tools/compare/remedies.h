// What would make a value's error smaller.
#ifndef HALFTONE_TOOLS_COMPARE_REMEDIES_H_
#define HALFTONE_TOOLS_COMPARE_REMEDIES_H_

#include <string>
#include <vector>

#include "graph/ir/program.h"
#include "runtime/compare/compare_programs.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace tools {

class Remedies {
 public:
  // All outlive it; `config` is FillConfig's, which knows the model.
  Remedies(const runtime::Comparison& comparison, const Program& program,
           const runtime::TrainConfig& config);

  // "--black-op conv1", "--loss-scale 65536 (...)": what the compiler takes and
  // makes another program of; empty: nothing is known to help.
  std::string For(const runtime::ComparedValue& value) const;

 private:
  std::string ForScale(const runtime::ComparedValue& value) const;
  // "--black-op conv1", of an op whose own error was measured.
  std::string ForOp(const runtime::ComparedValue& value) const;
  bool Accepts(const char* path, const std::string& value) const;
  // The first value in 16 bits that the op reads, as the model calls it.
  std::string LowInputOf(const std::string& op) const;

  const runtime::Comparison& comparison_;
  const Program& program_;
  const runtime::TrainConfig& config_;
  std::vector<std::string> model_ops_;
  // The largest power of two at which no f16 gradient overflows, with room for
  // twice the largest that was seen; 0: there are none, or the strategy does
  // not take it.
  double largest_scale_ = 0;
};

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMPARE_REMEDIES_H_
