#include "graph/import/einsum.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace {

constexpr absl::string_view kEllipsis = "...";

// A value and a letter for each of its dims. Those of an ellipsis are digits,
// 0 the last, as it is the last ones of several operands that go together.
struct Operand {
  std::string value, letters;
};

bool Has(absl::string_view letters, char letter) {
  return letters.find(letter) != absl::string_view::npos;
}

// Those of `letters` that are (or are not) among `others`.
std::string Common(absl::string_view letters, absl::string_view others,
                   bool are = true) {
  std::string kept;
  for (const char letter : letters) {
    if (Has(others, letter) == are) kept += letter;
  }
  return kept;
}

class Einsum {
 public:
  explicit Einsum(OpWriter* ops) : ops_(*ops) {}

  std::string Write(absl::string_view equation,
                    const std::vector<EinsumOperand>& given,
                    std::string* wrong) {
    std::vector<Operand> operands;
    std::string result;
    *wrong = Read(equation, given, &operands, &result);
    if (!wrong->empty()) return "";
    Operand all = operands[0];
    for (size_t i = 1; i < operands.size(); ++i) {
      std::string kept = result;  // by the result, and operands to come
      for (size_t k = i + 1; k < operands.size(); ++k) {
        kept += operands[k].letters;
      }
      all = Product(all, operands[i], kept);
    }
    return Ordered(Summed(all, result), result).value;
  }

 private:
  // Returns what is wrong.
  std::string Read(absl::string_view spaced,
                   const std::vector<EinsumOperand>& given,
                   std::vector<Operand>* operands, std::string* result);
  // The ellipsis of a term as digits, so that it has `rank` letters.
  std::string Spelled(absl::string_view term, size_t rank);
  Dims DimsOf(absl::string_view letters) const;
  Dim SizeOf(absl::string_view letters) const;
  // Over the letters that are not kept.
  Operand Summed(const Operand& of, absl::string_view kept);
  Operand Ordered(const Operand& of, absl::string_view letters);
  Operand Product(const Operand& a, const Operand& b, absl::string_view kept);
  Operand Elementwise(const Operand& a, const Operand& b);

  OpWriter& ops_;
  std::map<char, Dim> sizes_;
  std::string ellipsis_;  // the longest
};

std::string Einsum::Spelled(absl::string_view term, size_t rank) {
  const size_t at = term.find(kEllipsis);
  if (at == absl::string_view::npos) return std::string(term);
  std::string digits;
  for (size_t k = term.size() - kEllipsis.size(); k < rank; ++k) {
    digits.insert(digits.begin(), static_cast<char>('0' + digits.size() % 10));
  }
  if (digits.size() > ellipsis_.size()) ellipsis_ = digits;
  return absl::StrCat(term.substr(0, at), digits,
                      term.substr(at + kEllipsis.size()));
}

std::string Einsum::Read(absl::string_view spaced,
                         const std::vector<EinsumOperand>& given,
                         std::vector<Operand>* operands, std::string* result) {
  const std::string equation = absl::StrReplaceAll(spaced, {{" ", ""}});
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (sides.size() > 2 || terms.size() != given.size()) {
    return "expected a term for each input";
  }
  std::string all;
  for (size_t i = 0; i < terms.size(); ++i) {
    const Dims& dims = given[i].dims;
    const Operand operand = {given[i].value, Spelled(terms[i], dims.size())};
    if (operand.letters.size() != dims.size()) {
      return absl::StrCat("input ", i, " has ", dims.size(), " dims");
    }
    for (size_t k = 0; k < dims.size(); ++k) {
      const char letter = operand.letters[k];
      if (!absl::ascii_isalnum(static_cast<unsigned char>(letter))) {
        return "expected letters";
      }
      if (Has(operand.letters.substr(0, k), letter)) {
        return "diagonals are not taken";
      }
      if (sizes_.try_emplace(letter, dims[k]).first->second != dims[k]) {
        return absl::StrCat("dims ", std::string(1, letter), " differ");
      }
    }
    all += operand.letters;
    operands->push_back(operand);
  }
  if (sides.size() == 2) {
    *result = absl::StrReplaceAll(sides[1], {{kEllipsis, ellipsis_}});
  } else {  // what stands in one operand alone, in the order of the alphabet
    std::sort(all.begin(), all.end());
    *result = ellipsis_;
    for (const char letter : all) {
      const bool once = std::count(all.begin(), all.end(), letter) == 1;
      if (once && !Has(ellipsis_, letter)) *result += letter;
    }
  }
  std::string seen;
  for (const char letter : *result) {
    if (Has(seen, letter) || sizes_.count(letter) == 0) {
      return "expected letters of the inputs, each once";
    }
    seen += letter;
  }
  return "";
}

Dims Einsum::DimsOf(absl::string_view letters) const {
  Dims dims;
  for (const char letter : letters) dims.push_back(sizes_.at(letter));
  return dims;
}

Dim Einsum::SizeOf(absl::string_view letters) const {
  Dim size(1);
  for (const char letter : letters) size = size * sizes_.at(letter);
  return size;
}

Operand Einsum::Summed(const Operand& of, absl::string_view kept) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < of.letters.size(); ++i) {
    if (!Has(kept, of.letters[i])) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return of;
  return {ops_.Add("reduce_sum", {{"X", of.value}}, {{"dim", axes}}),
          Common(of.letters, kept)};
}

Operand Einsum::Ordered(const Operand& of, absl::string_view letters) {
  if (of.letters == letters) return of;
  std::vector<int64_t> order;
  for (const char letter : letters) {
    order.push_back(static_cast<int64_t>(of.letters.find(letter)));
  }
  return {ops_.Add("transpose", {{"X", of.value}}, {{"axis", order}}),
          std::string(letters)};
}

Operand Einsum::Elementwise(const Operand& a, const Operand& b) {
  const std::string letters = a.letters + Common(b.letters, a.letters, false);
  const Operand second = Ordered(b, Common(letters, b.letters));
  const auto spread = [&](const Operand& of) {
    Dims dims = DimsOf(letters);
    for (size_t i = 0; i < letters.size(); ++i) {
      if (!Has(of.letters, letters[i])) dims[i] = Dim(1);
    }
    return ops_.Reshaped(of.value, dims);
  };
  return {ops_.Binary("elementwise_mul", {spread(a), spread(second)}), letters};
}

Operand Einsum::Product(const Operand& a, const Operand& b,
                        absl::string_view kept) {
  const Operand x = Summed(a, absl::StrCat(kept, b.letters));
  const Operand y = Summed(b, absl::StrCat(kept, a.letters));
  const std::string both = Common(x.letters, y.letters);
  const std::string summed = Common(both, kept, false);
  if (summed.empty()) return Elementwise(x, y);
  const std::string each = Common(both, kept);
  const std::string rows = Common(x.letters, both, false);
  const std::string columns = Common(y.letters, both, false);
  // Where they lie transposed they are read so.
  const bool trans_x = x.letters == each + summed + rows && !rows.empty();
  const bool trans_y = y.letters == each + columns + summed && !columns.empty();
  const auto matrix = [&](const Operand& of, const std::string& first,
                          const std::string& second) {
    const Operand ordered = Ordered(of, each + first + second);
    Dims dims = {SizeOf(first), SizeOf(second)};
    if (!each.empty()) dims.insert(dims.begin(), SizeOf(each));
    return ops_.Reshaped(ordered.value, dims);
  };
  const std::string left =
      trans_x ? matrix(x, summed, rows) : matrix(x, rows, summed);
  const std::string right =
      trans_y ? matrix(y, columns, summed) : matrix(y, summed, columns);
  const std::string product =
      ops_.Add("matmul", {{"X", left}, {"Y", right}},
               {{"trans_x", trans_x}, {"trans_y", trans_y}});
  const std::string letters = each + rows + columns;
  return {ops_.Reshaped(product, DimsOf(letters)), letters};
}

}  // namespace

std::string WriteEinsum(OpWriter& ops, absl::string_view equation,
                        const std::vector<EinsumOperand>& operands,
                        std::string* wrong) {
  return Einsum(&ops).Write(equation, operands, wrong);
}

}  // namespace halftone
