#include "runtime/report/fetch_line.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/text.h"
#include "runtime/log/words.h"

namespace halftone {
namespace runtime {
namespace {

constexpr size_t kMostShown = 8;

std::string ValuesText(const FetchedValue& fetch) {
  const std::vector<float>& values = fetch.values;
  if (values.size() == 1) {
    return absl::StrCat(fetch.name, " ", ThreeDigits(values[0]));
  }
  if (fetch.histogram) {
    return absl::StrCat(fetch.name, " ", ThreeDigits(values[0]), " .. ",
                        ThreeDigits(values[1]), ", ", ThreeDigits(values[2]),
                        " not finite");
  }
  return absl::StrCat(fetch.name, " [",
                      absl::StrJoin(values, " ",
                                    [](std::string* out, float value) {
                                      absl::StrAppend(out, ThreeDigits(value));
                                    }),
                      "]");
}

std::string ShareText(double share) {
  return absl::StrCat(ThreeDigits(100 * share), " %");
}

// "2^-24 .. 2^9", "2^3": the exponents that there are.
std::string SpanText(const ExponentHistogram& h) {
  const auto filled = [](int64_t count) { return count > 0; };
  const auto first = std::find_if(h.bins.begin(), h.bins.end(), filled);
  if (first == h.bins.end()) return h.zero == h.elements() ? "all 0" : "none";
  const auto last = std::find_if(h.bins.rbegin(), h.bins.rend(), filled);
  const auto low = kLeastExponent + (first - h.bins.begin());
  const auto high = kMostExponent - (last - h.bins.rbegin());
  return low == high ? absl::StrCat("2^", low)
                     : absl::StrCat("2^", low, " .. 2^", high);
}

// Where f16 has made elements infinite, how large they were is lost: all that
// is known is that the scale at hand was too large for them.
// The others tell how small it may be, if there are any.
std::string SmallerText(const ExponentFacts& facts, float scale) {
  const ScaleRange& range = facts.scales;
  const ExponentHistogram& h = facts.histogram;
  const bool all = h.overflowed == h.elements() - h.zero - h.nan;
  if (!range.least.has_value() || all) return "; a smaller one is needed";
  const std::string least = ExactFloat(*range.least);
  return *range.least < scale
             ? absl::StrCat("; a smaller one is needed, but none below ", least)
             : absl::StrCat("; none would do: ", ExactFloat(scale),
                            " overflows, ", least, " is the first that keeps ",
                            ShareText(1 - kMayBeFlushed));
}

std::string RangeText(const ExponentFacts& facts) {
  const ScaleRange& range = facts.scales;
  if (!range.most.has_value() && facts.histogram.overflowed > 0) {
    return SmallerText(facts, *facts.loss_scaling);
  }
  const std::string most = ExactFloat(range.most.value_or(0));
  const std::string least = ExactFloat(range.least.value_or(0));
  if (!range.most.has_value() && !range.least.has_value()) return "";
  if (!range.most.has_value()) {
    return absl::StrCat("; from ", least, " on would do");
  }
  if (!range.least.has_value()) return absl::StrCat("; none above ", most);
  return *range.least <= *range.most
             ? absl::StrCat("; ", least, " .. ", most, " would do")
             : absl::StrCat("; none would do: ", most, " is the last without ",
                            "overflow, ", least, " the first that keeps ",
                            ShareText(1 - kMayBeFlushed));
}

// `most`: whose share is largest, where that is worth saying.
std::string ExponentsText(const std::string& name, const ExponentFacts& facts,
                          const std::string& most) {
  const ExponentHistogram& h = facts.histogram;
  std::string text = absl::StrCat(name, " ", SpanText(h), ", ");
  // What f16 has flushed before it was looked at is among them.
  if (h.zero > 0 && h.zero < h.elements()) {
    const auto zero = static_cast<double>(h.zero);
    absl::StrAppend(&text, ShareText(zero / static_cast<double>(h.elements())),
                    " zero, ");
  }
  absl::StrAppend(&text, h.flushed > 0 ? ShareText(h.flushed_share()) : "none",
                  " flushed", most, ", ",
                  h.overflowed > 0 ? ShareText(h.overflowed_share()) : "none",
                  " overflowed");
  if (h.nan > 0) absl::StrAppend(&text, ", ", WithCommas(h.nan), " nan");
  if (!facts.loss_scaling.has_value()) return text;
  return absl::StrCat(text, " at scale ", ExactFloat(*facts.loss_scaling),
                      RangeText(facts));
}

// " (most: conv1.w.grad 3 %)".
std::string MostFlushed(const std::vector<FetchedValue>& fetches) {
  const FetchedValue* most = nullptr;
  double share = 0;
  for (const FetchedValue& fetch : fetches) {
    if (!fetch.exponents.has_value()) continue;
    if (!fetch.exponents->loss_scaling.has_value()) continue;
    const double own = fetch.exponents->histogram.flushed_share();
    if (own <= share) continue;
    share = own;
    most = &fetch;
  }
  if (most == nullptr) return "";
  return absl::StrCat(" (most: ", absl::StripSuffix(most->name, ":exponents"),
                      " ", ShareText(share), ")");
}

}  // namespace

std::string FetchLine(const StepEvent& event) {
  std::vector<std::string> texts;
  int64_t together = 0;
  for (const FetchedValue& fetch : event.fetches) {
    if (!fetch.exponents.has_value()) {
      texts.push_back(ValuesText(fetch));
    } else if (event.exponents.has_value() &&
               fetch.exponents->loss_scaling.has_value()) {
      ++together;
    } else {
      texts.push_back(ExponentsText(fetch.name, *fetch.exponents, ""));
    }
  }
  if (together > 0) {
    texts.insert(
        texts.begin(),
        ExponentsText(absl::StrCat("exponents of ", Count(together, "value")),
                      *event.exponents, MostFlushed(event.fetches)));
  }
  if (texts.empty()) return "";
  return absl::StrCat("fetch    ", JoinFew(texts, kMostShown, ", "));
}

std::string FetchCostLine(const RunEnded& end) {
  if (!end.fetches.has_value() || end.fetches->steps == 0) return "";
  const FetchCost& cost = *end.fetches;
  return absl::StrCat(
      "fetch    ",
      cost.exponents_alone ? "exponent histograms" : "what was fetched", ": ",
      ShareText(end.seconds > 0 ? cost.seconds / end.seconds : 0),
      " of the run, ", ThreeDigits(1000 * cost.seconds), " ms in ",
      Count(cost.steps, "step"));
}

}  // namespace runtime
}  // namespace halftone
