#include "runtime/report/epoch_line.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "graph/base/text.h"
#include "runtime/log/words.h"

namespace halftone {
namespace runtime {
namespace {

// A field of the line; those with the highest rank go first.
struct Field {
  int rank;
  std::string text;
};

std::string Join(const std::vector<Field>& fields) {
  std::string line;
  for (const Field& field : fields) {
    if (field.text.empty()) continue;
    absl::StrAppend(&line, line.empty() ? "" : "  ", field.text);
  }
  return line;
}

// `units` of 10^-decimals, without zeros behind the last digit.
std::string Decimal(int64_t units, int decimals) {
  if (units == 0) return "0";
  std::string text =
      absl::StrFormat("%.*f", decimals, units * std::pow(10.0, -decimals));
  if (decimals == 0) return text;
  text.erase(text.find_last_not_of('0') + 1);
  return std::string(absl::StripSuffix(text, "."));
}

// "11.2k", "930", "2.31".
std::string Rate(double per_second) {
  if (per_second >= 1e6) return absl::StrFormat("%.1fM", per_second / 1e6);
  if (per_second >= 1e4) return absl::StrFormat("%.1fk", per_second / 1e3);
  return ThreeDigits(per_second);
}

}  // namespace

std::string SamplesRate(bool images, double per_second) {
  return Rate(per_second) + (images ? " img/s" : " samples/s");
}

std::string StepTimesText(const StepTimes& ms, bool parts_known) {
  // Three digits of the whole, and as many decimals for its parts.
  const double whole = std::max(ms.total, 0.0);
  int decimals = whole >= 100 ? 0 : whole >= 10 ? 1 : whole >= 1 ? 2 : 3;
  const auto units = std::llround(whole * std::pow(10.0, decimals));
  const std::vector<const char*> names =
      parts_known ? std::vector<const char*>{"data ", "fwd/bwd ", "comm ",
                                             "update ", "other "}
                  : std::vector<const char*>{"data ", "device "};
  const std::vector<double> parts =
      parts_known ? std::vector<double>{ms.data, ms.forward_backward,
                                        ms.communicate, ms.update, ms.other()}
                  : std::vector<double>{ms.data, whole - ms.data};
  const std::vector<int64_t> shares = Apportion(units, parts);
  std::string text = absl::StrCat(Decimal(units, decimals), " ms");
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == 4 && shares[i] == 0) break;  // nothing is left
    absl::StrAppend(&text, i == 0 ? " = " : " + ", names[i],
                    Decimal(shares[i], decimals));
  }
  return text;
}

std::string EpochLine(const RunStarted& run, const StepEvent& event, int room) {
  const int64_t epochs = run.strategy.train().epochs();
  const StepTimes& ms = event.times.per_step;
  const double left =
      static_cast<double>(run.total_steps - event.step) * ms.total / 1000;
  const int64_t skipped = event.step - event.applied;
  const std::string parts = StepTimesText(ms, run.parts_known);
  const std::string step = parts.substr(0, parts.find(" = "));
  const std::string scale =
      absl::StrCat("scale ", ExactFloat(event.loss_scaling));
  std::vector<Field> fields = {
      {2, absl::StrCat("epoch ", event.epoch, "/", epochs)},
      {1, absl::StrCat("step ", event.step, "/", run.total_steps)},
      {0, absl::StrCat("loss ", ThreeDigits(event.loss))},
      {4, absl::StrCat("lr ", ThreeDigits(event.lr))},
      {5, absl::StrCat(scale, " good ", event.good_steps)},
      {skipped > 0 ? 3 : 6, absl::StrCat("skipped ", skipped)},
      {8, absl::StrCat("|g| ", ThreeDigits(event.grad_norm))},
      {0, SamplesRate(run.images, event.times.samples_per_second)},
      {7, parts},
      {0, absl::StrCat("eta ", left < 0.5 ? "0 s" : Duration(left))},
  };
  const auto fits = [&] {
    return room <= 0 || static_cast<int>(Join(fields).size()) <= room;
  };
  // What a field has behind its first words goes before any whole field.
  if (!fits()) fields[8].text = step;
  if (!fits()) fields[4].text = scale;
  for (int rank_left = 8; rank_left > 0 && !fits(); --rank_left) {
    for (Field& field : fields) {
      if (field.rank == rank_left) field.text.clear();
    }
  }
  return Join(fields);
}

}  // namespace runtime
}  // namespace halftone
