#include "runtime/train/source_weights.h"

#include <cstddef>
#include <cstring>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/zoo/source_names.h"

namespace halftone {
namespace runtime {
namespace {

// [n, m] -> [m, n].
Tensor Transposed(Tensor tensor) {
  const int64_t rows = tensor.dims[0], columns = tensor.dims[1];
  const size_t size = SizeOf(tensor.dtype);
  std::string bytes(tensor.bytes.size(), '\0');
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      std::memcpy(&bytes[(c * rows + r) * size],
                  &tensor.bytes[(r * columns + c) * size], size);
    }
  }
  tensor.bytes = std::move(bytes);
  std::swap(tensor.dims[0], tensor.dims[1]);
  return tensor;
}

std::vector<NamedTensor> NamesOf(const Program& program) {
  std::vector<NamedTensor> names;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind != CellKind::kParameter &&
        cell.kind != CellKind::kStatistic) {
      continue;
    }
    names.push_back({cell.name, static_cast<int>(cell.type.dims.size())});
  }
  return names;
}

// Null: it is not there.
Tensor* FindIn(const std::map<std::string, Tensor*>& by_name,
               const SourceName& source) {
  const auto found = by_name.find(source.name);
  if (found != by_name.end()) return found->second;
  for (const std::string& other : source.others) {
    const auto spelled = by_name.find(other);
    if (spelled != by_name.end()) return spelled->second;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> ToSourceNames(absl::string_view convention,
                                                  const Program& program,
                                                  std::vector<Tensor> tensors) {
  const std::vector<NamedTensor> ours = NamesOf(program);
  HT_ASSIGN_OR_RETURN(const std::vector<SourceName> theirs,
                      SourceNames(convention, program.name, ours));
  absl::flat_hash_map<std::string, const SourceName*> source_of;
  for (size_t i = 0; i < ours.size(); ++i) {
    source_of[ours[i].name] = &theirs[i];
  }
  for (Tensor& tensor : tensors) {
    const auto it = source_of.find(tensor.name);
    if (it == source_of.end()) continue;
    tensor.name = it->second->name;
    if (it->second->transposed) tensor = Transposed(std::move(tensor));
  }
  return tensors;
}

std::string TakeSourceNames(const Program& program,
                            std::vector<Tensor>* tensors) {
  const std::vector<NamedTensor> ours = NamesOf(program);
  std::map<std::string, Tensor*> by_name;
  for (Tensor& tensor : *tensors) by_name[tensor.name] = &tensor;
  size_t most = 0;
  for (const NamedTensor& name : ours) most += by_name.count(name.name);
  std::string found;
  std::vector<SourceName> names;
  for (const std::string& convention : ConventionsOf(program.name)) {
    auto theirs = SourceNames(convention, program.name, ours);
    if (!theirs.ok()) continue;
    size_t there = 0;
    for (const SourceName& name : *theirs) {
      if (FindIn(by_name, name) != nullptr) ++there;
    }
    if (there <= most) continue;
    most = there;
    found = convention;
    names = *std::move(theirs);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    Tensor* const tensor = FindIn(by_name, names[i]);
    if (tensor == nullptr) continue;
    if (names[i].transposed && tensor->dims.size() == 2) {
      *tensor = Transposed(std::move(*tensor));
    }
    tensor->name = ours[i].name;
  }
  return found;
}

}  // namespace runtime
}  // namespace halftone
