#include "tools/report/roofline_report.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/error.h"
#include "graph/base/table.h"
#include "graph/base/wrap.h"
#include "graph/targets/target.h"
#include "nlohmann/json.hpp"
#include "runtime/log/words.h"
#include "runtime/profile/roofline.h"
#include "runtime/report/epoch_line.h"
#include "runtime/report/report_text.h"
#include "tools/common/json_text.h"

namespace halftone {
namespace tools {
namespace {

using runtime::CostClass;
using runtime::Percent;
using runtime::Plan;
using runtime::PlanPrediction;
using runtime::Roofline;
using runtime::ThreeDigits;
using Json = nlohmann::ordered_json;

constexpr int kTableColumns = 80, kTableLabel = 13;
constexpr size_t kLargest = 15;

struct Prediction {
  AskedPlan asked;
  int ranks = 1;
  Roofline roofline;
  PlanPrediction of;
  double samples_per_second() const { return asked.batch / of.seconds; }
};

absl::StatusOr<Prediction> PredictionFor(const CompiledModel& model,
                                         const PlanQuestion& question,
                                         const runtime::TuningTable& tuning) {
  HT_ASSIGN_OR_RETURN(const Target* target,
                      TargetNamed(model.target, "--target "));
  const std::optional<Roofline> roofline =
      runtime::RooflineOf(*target, target->cudnn_device, tuning);
  if (!roofline.has_value()) {
    return UsageError("plan --roofline: what this machine's ", target->name,
                      " reaches is not known; measure it: halftone tune MODEL, "
                      "which writes it beside MODEL");
  }
  Prediction prediction;
  HT_ASSIGN_OR_RETURN(prediction.asked, PlanAsked(model, question));
  prediction.ranks = question.ranks;
  prediction.roofline = *roofline;
  prediction.of = runtime::PredictPlan(prediction.asked.plan, *roofline);
  return prediction;
}

// Sums of a class; times of collectives as far as nothing is computed beside
// them.
struct ClassSum {
  double seconds = 0, bytes = 0, flops = 0;
  int launches = 0;
};
std::array<ClassSum, runtime::kCostClasses> ClassesOf(
    const Prediction& prediction) {
  std::array<ClassSum, runtime::kCostClasses> sums;
  double computed = 0;
  for (size_t i = 0; i < prediction.of.costs.size(); ++i) {
    const runtime::StepCost& cost = prediction.of.costs[i];
    ClassSum& sum = sums[static_cast<int>(cost.cost_class)];
    sum.bytes += cost.bytes;
    sum.flops += cost.flops;
    sum.launches += cost.launches;
    if (cost.cost_class == CostClass::kCollective) continue;
    sum.seconds += prediction.of.steps[i].seconds;
    computed += prediction.of.steps[i].seconds;
  }
  sums[static_cast<int>(CostClass::kCollective)].seconds =
      std::max(0.0, prediction.of.seconds - computed);
  return sums;
}

// Numbers of the plan's steps, those that take longest first.
std::vector<size_t> ByTime(const PlanPrediction& of) {
  std::vector<size_t> order(of.steps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&of](size_t a, size_t b) {
    return of.steps[a].seconds > of.steps[b].seconds;
  });
  return order;
}

std::string InUnits(double amount, double unit) {
  return amount > 0 ? absl::StrFormat("%.1f", amount / unit) : "-";
}
std::string MsOfSeconds(double seconds) {
  return absl::StrFormat("%.3f", 1000 * seconds);
}

std::string FlopsText(double rate) {
  return rate >= 1e12 ? absl::StrCat(ThreeDigits(rate / 1e12), " TFLOP/s")
                      : absl::StrCat(ThreeDigits(rate / 1e9), " GFLOP/s");
}

// "H100, data sheet: 3350 GB/s, ...; kernels reach ...; 2 us a launch".
std::string RooflineWords(const Roofline& roofline) {
  const Reach& reach = roofline.reach;
  std::string text =
      absl::StrCat(roofline.device.name,
                   roofline.measured ? ", measured: " : ", data sheet: ",
                   RatesText(roofline.device.memory, roofline.device.f32,
                             roofline.device.low));
  if (!roofline.measured) {
    absl::StrAppendFormat(
        &text, "; kernels reach %.0f %% of these, own ones %.2g TB/s",
        100 * reach.flops, reach.own_memory * roofline.device.memory / 1e12);
  }
  if (reach.launch > 0) {
    absl::StrAppendFormat(&text, "; %.3g us a launch", 1e6 * reach.launch);
  }
  return text;
}

bool IsFedImages(const Plan& plan) {
  return std::any_of(
      plan.feeds.begin(), plan.feeds.end(),
      [](const runtime::PlannedFeed& feed) { return feed.desc.rank() == 4; });
}

std::string LargestText(const Prediction& prediction, int columns) {
  const PlanPrediction& of = prediction.of;
  const Plan& plan = prediction.asked.plan;
  Table table({"share", "ms", "GFLOP", "MB", "bound",
               "op: what runs it, largest output"});
  for (int column : {0, 1, 2, 3}) table.RightAlign(column);
  for (size_t i : ByTime(of)) {
    if (table.rows() == static_cast<int>(kLargest)) break;
    if (of.costs[i].launches == 0) break;
    table.Add({Percent(of.steps[i].seconds, of.seconds),
               MsOfSeconds(of.steps[i].seconds),
               InUnits(of.costs[i].flops, 1e9), InUnits(of.costs[i].bytes, 1e6),
               std::string(Name(of.steps[i].bound)),
               absl::StrCat(plan.steps[i].name, ": ",
                            runtime::KernelOf(plan.steps[i]), " ",
                            runtime::ShapeOf(plan, plan.steps[i]))});
  }
  return table.Text(columns);
}

std::string ClassesText(const Prediction& prediction, int columns) {
  Table table({"share", "ms", "GFLOP", "MB", "kernels", "class"});
  for (int column : {0, 1, 2, 3, 4}) table.RightAlign(column);
  const auto sums = ClassesOf(prediction);
  for (int c = 0; c < runtime::kCostClasses; ++c) {
    const ClassSum& sum = sums[c];
    if (sum.launches == 0) continue;
    table.Add({Percent(sum.seconds, prediction.of.seconds),
               MsOfSeconds(sum.seconds), InUnits(sum.flops, 1e9),
               InUnits(sum.bytes, 1e6), absl::StrCat(sum.launches),
               std::string(Name(static_cast<CostClass>(c)))});
  }
  return table.Text(columns);
}

Json StepJson(const Prediction& prediction, size_t i) {
  const runtime::Step& step = prediction.asked.plan.steps[i];
  const runtime::StepCost& cost = prediction.of.costs[i];
  const bool library =
      step.candidate != nullptr &&
      prediction.roofline.reach.OfLibrary(step.candidate->name);
  return {{"name", step.name},
          {"kernel", runtime::KernelOf(step)},
          {"library", library},
          {"shape", runtime::ShapeOf(prediction.asked.plan, step)},
          {"class", std::string(Name(cost.cost_class))},
          {"flops", cost.flops},
          {"bytes", cost.bytes},
          {"sent", cost.sent},
          {"workspace_bytes", step.workspace.bytes},
          {"bound", std::string(Name(prediction.of.steps[i].bound))},
          {"ms", 1000 * prediction.of.steps[i].seconds}};
}

Json ToJson(const Prediction& prediction) {
  const Roofline& roofline = prediction.roofline;
  Json classes = Json::array(), steps = Json::array();
  const auto sums = ClassesOf(prediction);
  for (int c = 0; c < runtime::kCostClasses; ++c) {
    if (sums[c].launches == 0) continue;
    classes.push_back({{"class", std::string(Name(static_cast<CostClass>(c)))},
                       {"ms", 1000 * sums[c].seconds},
                       {"kernels", sums[c].launches},
                       {"bytes", sums[c].bytes},
                       {"flops", sums[c].flops}});
  }
  for (size_t i : ByTime(prediction.of)) {
    steps.push_back(StepJson(prediction, i));
  }
  return {{"schema", 1},
          {"ranks", prediction.ranks},
          {"batch", prediction.asked.batch},
          {"samples_of_rank_0", prediction.asked.plan.symbols[0]},
          {"device", roofline.device.name},
          {"measured", roofline.measured},
          {"rates",
           {{"memory", roofline.device.memory},
            {"low", roofline.device.low},
            {"f32", roofline.device.f32},
            {"link", roofline.device.link}}},
          {"step_ms", 1000 * prediction.of.seconds},
          {"samples_per_second", prediction.samples_per_second()},
          {"classes", classes},
          {"steps", steps}};
}

}  // namespace

std::string RatesText(double memory, double f32, double low) {
  return absl::StrCat(
      ThreeDigits(memory / 1e9), " GB/s, ", FlopsText(f32), " in f32",
      low > 0 ? absl::StrCat(", ", FlopsText(low), " in 16 bit") : "");
}

absl::StatusOr<std::string> RooflineText(const CompiledModel& model,
                                         const PlanQuestion& question,
                                         const runtime::TuningTable& tuning,
                                         bool json) {
  HT_ASSIGN_OR_RETURN(const Prediction prediction,
                      PredictionFor(model, question, tuning));
  if (json) return JsonText(ToJson(prediction));
  const int terminal = ColumnsOf(stdout);
  const int columns = terminal > 0 ? terminal : kTableColumns;
  const Plan& plan = prediction.asked.plan;
  std::string text = absl::StrCat(
      Hanging("ranks",
              absl::StrCat(
                  question.ranks, " on ", model.target, ", batch ",
                  runtime::SplitText(prediction.asked.batch, question.ranks)),
              kTableLabel, columns),
      Hanging("rates", RooflineWords(prediction.roofline), kTableLabel,
              columns),
      "\n", LargestText(prediction, columns), "\n",
      ClassesText(prediction, columns), "\n");
  absl::StrAppend(
      &text,
      Hanging("predicted",
              absl::StrCat(
                  ThreeDigits(1000 * prediction.of.seconds), " ms a step, ",
                  runtime::SamplesRate(IsFedImages(plan),
                                       prediction.samples_per_second())),
              kTableLabel, columns));
  if (question.ranks > 1 && prediction.roofline.device.link == 0) {
    absl::StrAppend(
        &text, Hanging("note",
                       "what ranks send each other is not counted: no rate "
                       "is known",
                       kTableLabel, columns));
  }
  return text;
}

}  // namespace tools
}  // namespace halftone
