// What tables say about a cast.
#ifndef HALFTONE_TOOLS_REPORT_CAST_TEXTS_H_
#define HALFTONE_TOOLS_REPORT_CAST_TEXTS_H_

#include <map>
#include <set>
#include <string>

#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {

// "conv1 fc"; where no op reads it: "the result" of the entry that it makes, or
// "the update", of a gradient.
std::string ReadersText(const proto::CastRow& cast);

class CastTexts {
 public:
  // `facts` outlive it.
  explicit CastTexts(const ModelFacts& facts);

  struct Row {
    // ReadersText; "backward of the above", where that is the cast of the row
    // before, else "backward of logits.cast_fp32".
    std::string of;
    // "standalone", "cell", "folded into ce ce.grad".
    std::string fate;
    // How a cast that something black asked for could be spared, and what then:
    // "--white softmax: moves to probabilities, 3,840 B", "--white mean: gone",
    // "--white softmax: stays, for the result". Models of at most kMostTried
    // ops are compiled with the flag to know. Of a gradient of a cast:
    // "(same)", or "as logits.cast_fp32".
    std::string without;
  };
  // Of the table's next row.
  Row Next(const proto::CastRow& cast);

  static constexpr int kMostTried = 5000;

 private:
  // Whether it is the gradient of a cast, the one that it names.
  bool IsGradientOfCast(const proto::CastRow& cast) const;
  std::string Without(const proto::CastRow& cast);
  // What --white for all of some types does.
  struct Effect {
    std::string said;  // "--white softmax: moves to probabilities, 3,840 B"
    // The casts that are still there, and what for.
    std::map<std::string, std::string> stay;
  };
  Effect EffectOf(const std::set<std::string>& types) const;

  const ModelFacts& facts_;
  const WrittenTypes types_;
  std::map<std::string, const proto::OpRow*> ops_;   // the model's own
  std::set<std::string> names_;                      // of all casts
  std::map<std::set<std::string>, Effect> effects_;  // by op types
  std::string above_;  // the cast of the row before
};

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_CAST_TEXTS_H_
