#include "graph/import/paddle_steps.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace halftone {
namespace {

using paddle::OpDesc;
using paddle::VarDesc;

// Conditionals in each other; what goes deeper is refused.
constexpr int kMostConditionals = 16;

// Paddle's op roles, which are bits; a loss's op has one more.
constexpr int64_t kLossRole = 256;

// What an op that is left out is for; empty: it is a forward one.
std::string RoleOf(const OpDesc& op) {
  if (op.type() == "feed" || op.type() == "fetch") return "feed and fetch";
  switch (IntAttr(op, "op_role", 0) & ~kLossRole) {
    case 0:
      return "";
    case 1:
      return "backward";
    case 2:
      return "optimizer";
    case 16:
      return "lr schedule";
    default:
      return "other roles";
  }
}

bool MakesLoss(const OpDesc& op) {
  return (IntAttr(op, "op_role", 0) & kLossRole) != 0;
}

// Of an op with several outputs the one that losses are called.
std::string LossOf(const OpDesc& op) {
  std::string last;
  for (const OpDesc::Var& out : op.outputs()) {
    if (out.arguments_size() == 0 || out.parameter() == "XShape") continue;
    last = out.arguments(0);
    if (out.parameter() == "Loss" || out.parameter() == "Out") break;
  }
  return last;
}

// AMP's multiplication of the loss.
bool IsAmpScale(const OpDesc& op) {
  return op.type() == "elementwise_mul" && MakesLoss(op) &&
         absl::StartsWith(FirstOf(op, "Y"), "loss_scaling");
}

class Sorter {
 public:
  explicit Sorter(const paddle::ProgramDesc& program) : program_(program) {}

  PaddleSteps Run() {
    Add(/*block=*/0, /*depth=*/0);
    for (const auto& [col, name] : fetches_) steps_.fetched.push_back(name);
    return std::move(steps_);
  }

 private:
  void Add(int block, int depth);
  // Block of a conditional's branch that can stand in its place; 0: none.
  int BranchOf(const OpDesc& op, int depth) const;

  const paddle::ProgramDesc& program_;
  PaddleSteps steps_;
  absl::flat_hash_set<int> visited_;  // blocks
  std::map<int64_t, std::string> fetches_;
};

int Sorter::BranchOf(const OpDesc& op, int depth) const {
  if (op.type() != "conditional_block" || depth == kMostConditionals) return 0;
  const OpDesc::Attr* const attr = FindAttr(op, "sub_block");
  if (attr == nullptr) return 0;
  const int block = attr->block_idx();
  const bool known = block > 0 && block < program_.blocks_size();
  return known && !visited_.contains(block) ? block : 0;
}

void Sorter::Add(int block, int depth) {
  visited_.insert(block);
  const paddle::BlockDesc& desc = program_.blocks(block);
  for (const VarDesc& var : desc.vars()) {
    const bool added = steps_.vars.try_emplace(var.name(), &var).second;
    if (added && block > 0) steps_.locals[var.name()] = block;
  }
  for (int i = 0; i < desc.ops_size(); ++i) {
    const OpDesc& op = desc.ops(i);
    std::string role = RoleOf(op);
    if (role.empty() && IsAmpScale(op)) {
      steps_.loss = FirstOf(op, "X");
      role = "loss scaling";
    }
    if (!role.empty()) {
      ++steps_.left_out[role];
      if (op.type() == "fetch") {
        fetches_[IntAttr(op, "col", i)] = FirstOf(op, "X");
      }
      continue;
    }
    if (const int branch = BranchOf(op, depth)) {
      steps_.conditions.push_back(FirstOf(op, "Cond"));
      Add(branch, depth + 1);
      continue;
    }
    steps_.forward.push_back({&op, block, i});
    if (!MakesLoss(op)) continue;
    steps_.loss = LossOf(op);
  }
}

}  // namespace

PaddleSteps StepsOf(const paddle::ProgramDesc& program) {
  return Sorter(program).Run();
}

bool IsAmpCast(const OpDesc& op) {
  const std::string x = FirstOf(op, "X");
  const auto& out = OutputsOf(op, "Out");
  if (op.type() != "cast" || x.empty() || out.empty()) return false;
  // Paddle's names, whatever ours are.
  for (const char* const end : {"cast_fp16", "cast_bf16", "cast_fp32"}) {
    if (out[0] == absl::StrCat(x, ".", end)) return true;
  }
  return false;
}

std::string FirstOf(const OpDesc& op, absl::string_view slot) {
  const auto& names = InputsOf(op, slot);
  return names.empty() ? "" : names[0];
}

std::string PlaceOf(const PaddleStep& step) {
  std::string output;
  for (const OpDesc::Var& out : step.op->outputs()) {
    if (output.empty() && out.arguments_size() > 0) output = out.arguments(0);
  }
  return absl::StrCat("block ", step.block, " op ", step.index,
                      output.empty() ? "" : absl::StrCat(" (", output, ")"));
}

}  // namespace halftone
