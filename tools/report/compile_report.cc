#include "tools/report/compile_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/display.h"
#include "graph/base/shell_word.h"
#include "graph/base/text.h"
#include "graph/base/wrap.h"
#include "graph/strategy/first_rate.h"
#include "graph/strategy/optimizer_method.h"
#include "nlohmann/json.hpp"
#include "passes/options/options.h"
#include "runtime/log/words.h"
#include "tools/common/json_text.h"
#include "tools/common/planned_peak.h"
#include "tools/report/inspect_report.h"
#include "tools/report/opt_report.h"

namespace halftone {
namespace tools {
namespace {

using runtime::Count;

std::string Line(const std::string& label, const std::string& text) {
  return Hanging(label, text, 14, ColumnsOf(stdout));
}

std::string Number(double value) {
  return ExactFloat(static_cast<float>(value));
}

// "ce, loss (black list), x (no float input)": the ops in f32, by reason.
std::string Exceptions(const ModelFacts& facts) {
  std::vector<OpsOfReason> groups = facts.f32_ops;
  std::stable_sort(groups.begin(), groups.end(),
                   [](const OpsOfReason& a, const OpsOfReason& b) {
                     return a.count > b.count;
                   });
  return absl::StrJoin(
      groups, ", ", [](std::string* out, const OpsOfReason& group) {
        std::vector<std::string> names = group.first;
        const int more = group.count > OpsOfReason::kMost ? group.count - 3 : 0;
        if (more > 0) names.resize(3);
        absl::StrAppend(out, absl::StrJoin(names, ", "),
                        more > 0 ? absl::StrCat(" and ", more, " more") : "",
                        " (", ReasonText(group.reason), ")");
      });
}

std::string PrecisionText(const ModelFacts& facts) {
  const proto::Amp& amp = facts.model->strategy.amp();
  if (facts.low_ops == 0) {
    return absl::StrCat(amp.level(), ": all ", Count(facts.ops, "op"), " f32");
  }
  const std::string exceptions = Exceptions(facts);
  return absl::StrCat(
      amp.level(), " ", amp.dtype(),
      amp.level() == "O1" ? absl::StrCat(", rule ", amp.precision_rule()) : "",
      ": ", facts.low_ops, " of ", Count(facts.ops, "op"), " ", facts.low,
      exceptions.empty() ? "" : absl::StrCat("; f32: ", exceptions));
}

std::string CastsText(const ModelFacts& facts) {
  const int all = facts.standalone + facts.folded + facts.cell;
  if (all == 0) return "none";
  std::vector<std::string> parts;
  if (facts.cell > 0) {
    parts.push_back(absl::StrCat(facts.cell, " replaced by ", facts.low,
                                 " cells beside the FP32 copies"));
  }
  if (facts.folded > 0) {
    parts.push_back(absl::StrCat(facts.folded, " folded into kernels"));
  }
  return absl::StrCat(
      all, " inserted", parts.empty() ? "" : " = ", absl::StrJoin(parts, " + "),
      "; ", facts.standalone,
      facts.standalone == 1 ? " runs on its own" : " run on their own",
      facts.standalone == 0
          ? ""
          : absl::StrCat(", ", WithCommas(facts.standalone_bytes), " B/step"));
}

std::string ScalingText(const proto::LossScaling& scaling) {
  if (!scaling.use_dynamic_loss_scaling()) {
    return absl::StrCat("constant, ", Number(scaling.init_loss_scaling()));
  }
  const double floor = scaling.min_loss_scaling();
  const double ceiling = scaling.max_loss_scaling();
  return absl::StrCat("dynamic, ", Number(scaling.init_loss_scaling()), "; x",
                      Number(scaling.incr_ratio()), " after ",
                      Count(scaling.incr_every_n_steps(), "clean step"), ", x",
                      Number(scaling.decr_ratio()), " after ",
                      scaling.decr_every_n_nan_or_inf(), " bad",
                      scaling.decr_every_n_nan_or_inf() > 1 ? " in a row" : "",
                      ", within ", floor > 0 ? Number(floor) : "0", " .. ",
                      absl::StrFormat("%.15g", ceiling));
}

std::string GradientsText(const ModelFacts& facts) {
  const size_t buckets = facts.model->report.bucket_size();
  const proto::Dist& dist = facts.model->strategy.dist();
  std::string text = absl::StrCat(
      facts.gradients, " (", WithCommas(facts.gradient_values), " values)");
  if (passes::AveragesParameters(dist)) {
    absl::StrAppend(&text, ", each rank's own; parameters are averaged");
  } else {
    absl::StrAppend(&text, " in ", Count(buckets, "all-reduce"), ": ",
                    absl::StrJoin(facts.bucket_bytes, ", ",
                                  [](std::string* out, const auto& bucket) {
                                    absl::StrAppend(out, bucket.first, " ",
                                                    WithCommas(bucket.second),
                                                    " B");
                                  }));
  }
  if (passes::CompressesGradients(dist)) {
    absl::StrAppend(&text, "; of large ones the largest elements");
  }
  absl::StrAppend(&text, "; + ", facts.totals, " totals");
  if (facts.counts > 0) {
    absl::StrAppend(&text, ", + ", facts.counts, " of counts");
  }
  if (facts.statistics_reductions > 0) {
    absl::StrAppend(&text, ", + ", facts.statistics_reductions,
                    " for sync_batch_norm");
  }
  const int64_t group =
      facts.model->strategy.dist().sync_batch_norm_group_size();
  return absl::StrCat(
      text, "; ",
      group > 1 ? absl::StrCat("a multiple of ", group) : "any number of",
      " ranks");
}

std::string MemoryText(const ModelFacts& facts) {
  return absl::StrCat(HumanBytes(facts.peak_bytes), " at ",
                      Count(facts.samples, "sample"), " on one rank",
                      ThreadsText(" of ", QuestionOf(*facts.model, 0, 1)), ", ",
                      HumanBytes(facts.state.total()),
                      " of it state; other splits: halftone plan");
}

// "rmsprop alpha 0.99 epsilon 1e-08 centered": its numbers, and what is on.
// Weight decay has a place of its own.
std::string FieldsText(std::string text,
                       const google::protobuf::Message& method) {
  const google::protobuf::Reflection& get = *method.GetReflection();
  const google::protobuf::Descriptor& fields = *method.GetDescriptor();
  const auto* decay = FieldOfMethod(fields, "weight_decay");
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto* field = fields.field(i);
    if (field == decay) continue;
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_BOOL) {
      absl::StrAppend(&text, " ", field->name(), " ",
                      Number(get.GetDouble(method, field)));
    } else if (get.GetBool(method, field) != field->default_value_bool()) {
      absl::StrAppend(&text, get.GetBool(method, field) ? " " : " no ",
                      field->name());
    }
  }
  return text;
}

std::string MethodText(const proto::Optimizer& optimizer) {
  const auto adam = [](const char* name, const proto::Adam& adam) {
    return absl::StrCat(name, " betas ", Number(adam.beta1()), " ",
                        Number(adam.beta2()), " epsilon ",
                        Number(adam.epsilon()));
  };
  if (optimizer.has_momentum()) {
    const proto::Momentum& momentum = optimizer.momentum();
    return absl::StrCat("momentum ", Number(momentum.momentum()),
                        momentum.use_nesterov() ? " (Nesterov)" : "");
  }
  if (optimizer.has_adam()) return adam("adam", optimizer.adam());
  if (optimizer.has_adamw()) return adam("adamw", optimizer.adamw());
  const auto* method = MethodFieldOf(optimizer);
  return method == nullptr
             ? "sgd"
             : FieldsText(method->name(), optimizer.GetReflection()->GetMessage(
                                              optimizer, method));
}

// "no trust_ratio, beta1 0.5": of a group, beside its decay and rate.
std::string OverridesText(const proto::Group& group) {
  std::vector<const google::protobuf::FieldDescriptor*> set;
  group.GetReflection()->ListFields(group, &set);
  std::vector<std::string> parts;
  for (const auto* field : set) {
    if (!OverridesMethod(*field) || field->name() == "weight_decay") continue;
    const google::protobuf::Reflection& get = *group.GetReflection();
    parts.push_back(field->cpp_type() ==
                            google::protobuf::FieldDescriptor::CPPTYPE_BOOL
                        ? absl::StrCat(get.GetBool(group, field) ? "" : "no ",
                                       field->name())
                        : absl::StrCat(field->name(), " ",
                                       Number(get.GetDouble(group, field))));
  }
  return absl::StrJoin(parts, ", ");
}

// "epochs" or "steps": what a schedule counts.
std::string Counted(const std::string& every) {
  return every == "steps" ? "steps" : "epochs";
}

std::string PeakText(const proto::OneCycle& s) {
  return s.has_max_lr()
             ? Number(s.max_lr())
             : absl::StrCat("base x ", Number(s.has_factor() ? s.factor() : 1));
}

// With the numbers by which it changes.
std::string ScheduleText(const proto::LearningRate& lr) {
  switch (lr.schedule_case()) {
    case proto::LearningRate::kStep:
      return absl::StrCat("step x", Number(lr.step().gamma()), " every ",
                          lr.step().step_size(), " ",
                          Counted(lr.step().every()));
    case proto::LearningRate::kMultiStep:
      return absl::StrCat("multi_step x", Number(lr.multi_step().gamma()),
                          " at ",
                          absl::StrJoin(lr.multi_step().milestones(), ", "),
                          " ", Counted(lr.multi_step().every()));
    case proto::LearningRate::kPolynomial:
      return absl::StrCat("polynomial, power ", Number(lr.polynomial().power()),
                          ", to ", Number(lr.polynomial().end_lr()));
    case proto::LearningRate::kExponential:
      return absl::StrCat(
          "exponential x", Number(lr.exponential().gamma()), " every ",
          lr.exponential().every() == "steps" ? "step" : "epoch");
    case proto::LearningRate::kOneCycle:
      return absl::StrCat("one_cycle to ", PeakText(lr.one_cycle()));
    case proto::LearningRate::kNoam:
      return absl::StrCat("noam, width ", lr.noam().d_model(),
                          ", highest at step ", lr.noam().warmup_steps());
    case proto::LearningRate::kCyclic:
      return absl::StrCat("cyclic to ", Number(lr.cyclic().max_lr()), " in ",
                          lr.cyclic().step_size_up(), " ",
                          Counted(lr.cyclic().every()));
    case proto::LearningRate::kCosineRestarts:
      return absl::StrCat("cosine_restarts after ", lr.cosine_restarts().t_0(),
                          " ", Counted(lr.cosine_restarts().every()));
    case proto::LearningRate::kCosine:
      return "cosine";
    case proto::LearningRate::kLinear:
      return "linear";
    case proto::LearningRate::kPiecewise:
      return "piecewise";
    default:
      return "constant";
  }
}

std::string LearningRateText(const proto::Strategy& strategy) {
  const proto::LearningRate& lr = strategy.lr();
  const std::optional<double> own = OwnFirstRate(lr);
  std::string text = absl::StrCat("lr ", Number(own.value_or(lr.base())));
  const int64_t batch = strategy.train().batch_size();
  if (!own.has_value() && lr.base_batch() > 0 && batch > 0) {
    absl::StrAppend(&text, " x ", batch, "/", lr.base_batch(), " = ",
                    Number(lr.base() * static_cast<double>(batch) /
                           static_cast<double>(lr.base_batch())));
  }
  absl::StrAppend(&text, " ", ScheduleText(lr));
  if (lr.warmup_steps() > 0) {
    absl::StrAppend(&text, " after ", Count(lr.warmup_steps(), "warm-up step"));
  } else if (lr.warmup_epochs() > 0) {
    absl::StrAppend(&text, " after ", Number(lr.warmup_epochs()), " warm-up ",
                    lr.warmup_epochs() == 1 ? "epoch" : "epochs",
                    std::floor(lr.warmup_epochs()) == lr.warmup_epochs()
                        ? ""
                        : " (whole steps)");
  }
  return text;
}

}  // namespace

std::string ReasonText(const std::string& code) {
  static const auto& texts = *new std::map<std::string, std::string>{
      {"WHITE_LIST", "white list"},
      {"BLACK_LIST", "black list"},
      {"UNLISTED", "on no list"},
      {"GRAY_ALL_LOW", "gray, all inputs low"},
      {"GRAY_F32_INPUT", "gray, an f32 input"},
      {"GRAY_ANY_LOW", "gray, a low input"},
      {"NO_LOW_INPUT", "no low input"},
      {"CLEAR_FOLLOWS", "follows its input"},
      {"FOLLOWS_READERS", "follows its readers"},
      {"NO_FLOAT_INPUT", "no float input"},
      {"USER_WHITE", "your white list"},
      {"USER_BLACK", "your black list"},
      {"BLACK_VARNAME", "your black variable"},
      {"FP32_SCOPE", "your FP32 scope"},
      {"NO_KERNEL", "no low-precision kernel"},
      {"LOSS", "the loss"},
      {"LEVEL", "the level"},
  };
  const auto text = texts.find(code);
  return text == texts.end() ? code : text->second;
}

std::string UpdateText(const proto::Strategy& strategy) {
  const proto::Optimizer& optimizer = strategy.optimizer();
  std::vector<std::string> parts = {
      absl::StrCat(MethodText(optimizer), ", ", LearningRateText(strategy))};
  if (WeightDecayOf(optimizer) != 0) {
    parts.push_back(
        absl::StrCat("weight decay ", Number(WeightDecayOf(optimizer))));
  }
  for (const proto::Group& group : optimizer.group()) {
    if (group.has_weight_decay()) {
      parts.push_back(absl::StrCat(
          group.weight_decay() == 0
              ? "no weight decay"
              : absl::StrCat("weight decay ", Number(group.weight_decay())),
          " on ", group.match()));
    }
    if (group.has_lr_scale()) {
      parts.push_back(absl::StrCat("lr x ", Number(group.lr_scale()), " on ",
                                   group.match()));
    }
    const std::string others = OverridesText(group);
    if (!others.empty()) {
      parts.push_back(absl::StrCat(others, " on ", group.match()));
    }
  }
  const proto::Clip& clip = optimizer.clip();
  if (clip.has_global_norm()) {
    parts.push_back(
        absl::StrCat("gradients clipped to norm ", Number(clip.global_norm())));
  }
  if (clip.has_norm()) {
    parts.push_back(
        absl::StrCat("each gradient clipped to norm ", Number(clip.norm())));
  }
  if (clip.has_value()) {
    parts.push_back(
        absl::StrCat("gradients clipped to +-", Number(clip.value())));
  }
  if (optimizer.has_ema()) {
    parts.push_back(absl::StrCat(
        "evaluated by averages, decay ", Number(optimizer.ema().decay()),
        optimizer.ema().warmup() ? " after warm-up" : ""));
  }
  return absl::StrJoin(parts, "; ");
}

std::string CompileText(const ModelFacts& facts, const std::string& path,
                        int64_t bytes) {
  const CompiledModel& model = *facts.model;
  std::string text =
      Line("precision", PrecisionText(facts)) + Line("casts", CastsText(facts));
  if (facts.trains) {
    text +=
        Line("loss scaling", ScalingText(model.strategy.amp().loss_scaling()));
    text += Line("gradients", GradientsText(facts));
    text += Line("update", UpdateText(model.strategy));
  } else {
    const bool no_loss = !model.source.model->has_loss();
    text += Line("update", no_loss ? "none: the model has no loss; forward and "
                                     "eval only: add loss { ... } to train it"
                                   : "none: no optimizer in the strategy; "
                                     "forward and eval only");
  }
  if (facts.peak_bytes >= 0) text += Line("memory", MemoryText(facts));
  for (const proto::Note& note : model.report.note()) {
    text += Line(absl::StrCat("note ", note.code()),
                 absl::StrCat(note.text(), "  halftone explain ", note.code()));
  }
  if (path.empty()) return text;
  double ms = 0;
  for (const proto::PassRow& pass : model.passes) ms += pass.ms();
  // A file keeps no times.
  const std::string took =
      ms > 0 ? absl::StrCat(" in ", runtime::ThreeDigits(ms), " ms")
             : ", which ran before";
  return text +
         Line(path, absl::StrCat(model.fingerprint.substr(0, 8), ", ",
                                 HumanBytes(bytes), ", ", model.target,
                                 " kernels, ", model.passes.size(), " passes",
                                 took, "  halftone inspect ", ShellWord(path)));
}

std::string CompileJson(const ModelFacts& facts, const std::string& path,
                        int64_t bytes) {
  const CompiledModel& model = *facts.model;
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"model", model.source.model->name()},
                                 {"level", model.strategy.amp().level()},
                                 {"target", model.target},
                                 {"fingerprint", model.fingerprint},
                                 {"path", path},
                                 {"bytes", bytes},
                                 {"totals", TotalsJson(facts)},
                                 {"passes", PassesJson(model.passes)},
                                 {"notes", nlohmann::ordered_json::array()}};
  for (const proto::Note& note : model.report.note()) {
    json["notes"].push_back({{"code", note.code()},
                             {"text", note.text()},
                             {"ops", std::vector<std::string>(
                                         note.op().begin(), note.op().end())}});
  }
  return JsonText(json);
}

}  // namespace tools
}  // namespace halftone
