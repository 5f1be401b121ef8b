#include "passes/lower/compress.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/decision.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "passes/lower/compressible.h"
#include "passes/lower/forward_part.h"
#include "passes/lower/recompute_choice.h"
#include "passes/options/byte_text.h"

namespace halftone {
namespace passes {
namespace {

class Packer {
 public:
  Packer(Block& block, const proto::Compress& compress)
      : block_(block), compress_(compress) {}

  // `behind` is the op after which nothing of the forward part reads it.
  absl::Status Pack(const Compressible::Value& value, OpId behind) {
    const ValueId x = value.value;
    const std::string name(block_.name(x));
    // A stream of its own, by its name, as random ops of a model have.
    const int64_t stream =
        static_cast<int64_t>((StableHash(name) & 0x7fffffff) | 1);
    HT_ASSIGN_OR_RETURN(
        const OpId packed,
        Builder("quantize_groups", absl::StrCat(name, ".packed"), value)
            .In("X", x)
            .Attr("stream", stream)
            .Out("Codes", absl::StrCat(name, ".codes"))
            .Out("Scales", absl::StrCat(name, ".scales"))
            .At(block_.After(behind))
            .Role(Role::kForward)
            .Build());
    const std::string unpacked_name = absl::StrCat(name, ".unpacked");
    HT_ASSIGN_OR_RETURN(const OpId unpacked,
                        Builder("dequantize_groups", unpacked_name, value)
                            .Bind("T", block_.dtype(x))
                            .In("Like", x)
                            .In("Codes", block_.op(packed).out(0))
                            .In("Scales", block_.op(packed).out(1))
                            .Out("Out", unpacked_name)
                            .At(Block::Before(value.readers[0].op))
                            .Role(Role::kBackward)
                            .Build());
    const ValueId made = block_.op(unpacked).out(0);
    for (const Use& reader : value.readers) {
      block_.SetInput(reader.op, reader.position, made);
    }
    return absl::OkStatus();
  }

 private:
  OpBuilder Builder(absl::string_view type, const std::string& name,
                    const Compressible::Value& value) {
    const Op& maker = block_.op(block_.value(value.value).op());
    Decision why;
    why.precision = block_.dtype(value.value);
    why.reason = Reason::kCompressed;
    why.because_of.push_back(maker.name);
    OpBuilder builder(&block_, type);
    builder.Name(name)
        .Attr("bits", compress_.bits())
        .Attr("group_size", compress_.group_size())
        .Attr("rows", value.rows)
        .Why(why)
        .Line(maker.line)
        .Unique();
    return builder;
  }

  Block& block_;
  const proto::Compress& compress_;
};

bool IsPacked(const Block& block) {
  return block.CountOf(Ops().Find("quantize_groups")) > 0;
}

}  // namespace

absl::StatusOr<bool> Compress::RunOn(Entry& entry) {
  if (IsPacked(entry.block())) return false;
  const proto::Compress& compress = strategy_.memory().compress();
  const ForwardPart forward(entry);
  std::vector<Compressible> found = FindCompressible(forward, compress);
  if (const auto within =
          BytesFromText(strategy_.memory().recompute().within())) {
    found = ChoosePacked(forward, target_, found, compress,
                         SamplesAtOnce(strategy_), *within);
  }
  Packer packer(entry.block(), compress);
  for (const Compressible& kept : found) {
    for (const Compressible::Value& value : kept.values) {
      HT_RETURN_IF_ERROR(packer.Pack(value, forward.ops()[kept.last_forward]));
    }
  }
  return !found.empty();
}

absl::StatusOr<bool> Compress::Run(Program& program) {
  if (strategy_.memory().compress().bits() == 0) return false;
  bool changed = false;
  for (const char* name : {kTrainEntry, kAccumulateEntry}) {
    Entry* const entry = program.FindEntry(name);
    if (entry == nullptr) continue;
    HT_ASSIGN_OR_RETURN(const bool packed, RunOn(*entry));
    changed |= packed;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
