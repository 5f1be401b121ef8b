#include "runtime/report/profile_text.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/table.h"
#include "graph/base/wrap.h"
#include "runtime/log/words.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int kLabel = 9;  // columns of "profile  "

std::string Ms(double ms) { return absl::StrFormat("%.3f", ms); }

// Billions in a second; a dash where there is nothing to say.
std::string Rate(double amount, double ms) {
  if (amount <= 0 || ms <= 0) return "-";
  return absl::StrFormat("%.1f", amount / ms / 1e6);
}

// Of what the device could do at best.
std::string OfRoofline(std::optional<double> roofline_ms, double ms) {
  if (roofline_ms.value_or(0) <= 0 || ms <= 0) return "-";
  return absl::StrFormat("%.0f %%", 100 * *roofline_ms / ms);
}

std::string ClassesText(const ProfileTable& profile, int columns) {
  const bool known = profile.rows[0].roofline_ms.has_value();
  std::vector<std::string> head = {"class",   "ms",   "share",
                                   "kernels", "GB/s", "GFLOP/s"};
  if (known) head.emplace_back("of roofline");
  const int right = static_cast<int>(head.size());
  Table table(std::move(head));
  for (int column = 1; column < right; ++column) table.RightAlign(column);
  for (const ProfileTable::Row& row : profile.rows) {
    std::vector<std::string> cells = {row.name,
                                      Ms(row.ms),
                                      Percent(row.ms, profile.step_ms),
                                      absl::StrCat(row.kernels),
                                      Rate(row.bytes, row.ms),
                                      Rate(row.flops, row.ms)};
    if (known) cells.push_back(OfRoofline(row.roofline_ms, row.ms));
    table.Add(std::move(cells));
  }
  return table.Text(columns);
}

std::string DearestText(const ProfileTable& profile, int columns) {
  const bool known = profile.dearest[0].predicted_ms.has_value();
  std::vector<std::string> head = {"op", "ms", "share", "GB/s", "GFLOP/s"};
  if (known) head.insert(head.end(), {"predicted ms", "of roofline"});
  const int right = static_cast<int>(head.size());
  if (known) head.emplace_back("bound");
  head.emplace_back("kernel");
  Table table(std::move(head));
  for (int column = 1; column < right; ++column) table.RightAlign(column);
  for (const ProfileTable::Op& op : profile.dearest) {
    std::vector<std::string> cells = {
        op.name, Ms(op.ms), Percent(op.ms, profile.step_ms),
        Rate(op.bytes, op.ms), Rate(op.flops, op.ms)};
    if (known) {
      cells.insert(cells.end(), {Ms(*op.predicted_ms),
                                 OfRoofline(op.roofline_ms, op.ms), op.bound});
    }
    cells.push_back(
        absl::StrCat(op.kernel, op.shape.empty() ? "" : " ", op.shape));
    table.Add(std::move(cells));
  }
  return table.Text(columns);
}

}  // namespace

std::string ProfileText(const ProfileTable& profile, int columns) {
  std::string text =
      absl::StrCat("profile  ", Count(profile.steps, "step"), " of ",
                   ThreeDigits(profile.step_ms), " ms, step by step",
                   profile.steps == 0 ? ": too few to tell" : "", "\n");
  if (profile.steps == 0) return text;
  text += ClassesText(profile, columns);
  if (profile.dearest.empty()) return text;
  const char* by =
      "nothing: halftone tune MODEL measures what this machine "
      "reaches";
  if (profile.dearest[0].predicted_ms.has_value()) {
    by = profile.measured ? "rates that halftone tune measured"
                          : "the device's data sheet";
  }
  absl::StrAppend(&text,
                  Hanging("dearest",
                          absl::StrCat(Count(profile.dearest.size(), "op"),
                                       "; predicted by ", by),
                          kLabel, columns),
                  DearestText(profile, columns));
  for (const ProfileTable::Op& op : profile.dearest) {
    if (op.hint.empty()) continue;
    text +=
        Hanging("try", absl::StrCat(op.name, ": ", op.hint), kLabel, columns);
  }
  return text;
}

}  // namespace runtime
}  // namespace halftone
