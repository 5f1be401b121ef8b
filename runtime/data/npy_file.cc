#include "runtime/data/npy_file.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/half.h"
#include "graph/base/text.h"

namespace halftone {
namespace runtime {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr size_t kLongestHeader = 1 << 16, kMostDims = 32;
constexpr char kSaveAgain[] = "; fetch or save it again";

// The Python literal before the data: {'descr': '<f4', 'fortran_order': False,
// 'shape': (2, 3), }, in any order.
class HeaderReader {
 public:
  // `cast_to`: what to convert other elements to, as NumPy calls it.
  HeaderReader(absl::string_view text, absl::string_view cast_to,
               NpyArray* array)
      : text_(text), cast_to_(cast_to), array_(array) {}

  absl::Status Read() {
    bool descr = false, order = false, shape = false;
    if (!Take('{')) return Bad();
    while (!Take('}')) {
      std::string key;
      if (!Quoted(&key) || !Take(':')) return Bad();
      if (key == "descr") {
        HT_RETURN_IF_ERROR(Descr());
        descr = true;
      } else if (key == "fortran_order") {
        array_->fortran_order = Word("True");
        if (!array_->fortran_order && !Word("False")) return Bad();
        order = true;
      } else if (key == "shape") {
        if (!Shape()) return Bad();
        shape = true;
      } else {
        return Bad();
      }
      if (!Take(',') && !absl::StartsWith(text_, "}")) return Bad();
    }
    return descr && order && shape ? absl::OkStatus() : Bad();
  }

 private:
  void SkipSpace() { text_ = absl::StripLeadingAsciiWhitespace(text_); }
  bool Word(absl::string_view word) {
    SkipSpace();
    return absl::ConsumePrefix(&text_, word);
  }
  bool Take(char c) {
    const bool taken = Word(absl::string_view(&c, 1));
    SkipSpace();
    return taken;
  }
  bool Quoted(std::string* text) {
    SkipSpace();
    const char quote = text_.empty() ? '\0' : text_[0];
    const size_t end = text_.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == absl::string_view::npos) {
      return false;
    }
    *text = std::string(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return true;
  }
  bool Shape() {
    if (!Take('(')) return false;
    while (!Take(')')) {
      size_t digits = 0;
      while (digits < text_.size() && absl::ascii_isdigit(text_[digits])) {
        ++digits;
      }
      int64_t dim = 0;
      if (!absl::SimpleAtoi(text_.substr(0, digits), &dim) ||
          array_->dims.size() == kMostDims) {
        return false;
      }
      array_->dims.push_back(dim);
      text_.remove_prefix(digits);
      absl::ConsumePrefix(&text_, "L");  // of Python 2
      if (!Take(',') && !absl::StartsWith(text_, ")")) return false;
    }
    return true;
  }
  absl::Status Descr();
  absl::Status Bad() const {
    return ModelError(array_->file, ": not an .npy file: its header is no ",
                      "descr, fortran_order and shape", kSaveAgain);
  }

  absl::string_view text_;
  const absl::string_view cast_to_;
  NpyArray* array_;
};

bool IsNumber(char kind, int size) {
  switch (kind) {
    case 'b':
      return size == 1;
    case 'i':
    case 'u':
      return size == 1 || size == 2 || size == 4 || size == 8;
    case 'f':
      return size == 2 || size == 4 || size == 8;
    default:
      return false;
  }
}

absl::Status HeaderReader::Descr() {
  if (absl::StartsWith(text_, "[")) {
    return ModelError(array_->file, ": records of several fields: expected ",
                      "an array of numbers; save each field by itself");
  }
  std::string descr;
  if (!Quoted(&descr)) return Bad();
  absl::string_view type = descr;
  const bool big = absl::ConsumePrefix(&type, ">");
  if (!type.empty() && absl::StrContains("<|=", type.substr(0, 1))) {
    type.remove_prefix(1);
  }
  if (absl::StartsWith(type, "O")) {
    return ModelError(array_->file, ": Python objects (pickled): expected an ",
                      "array of numbers, such as numpy.asarray(x, ", "dtype=\"",
                      cast_to_,
                      "\"); lists of unequal lengths must be padded before");
  }
  if (type.empty() || !absl::SimpleAtoi(type.substr(1), &array_->item_size) ||
      !IsNumber(type[0], array_->item_size)) {
    return ModelError(array_->file, ": dtype ", descr, ": expected bool, int8 ",
                      "to int64, uint8 to uint64, float16, float32 or ",
                      "float64; convert it with x.astype(\"", cast_to_, "\")");
  }
  array_->kind = type[0];
  if (big && array_->item_size > 1) {
    return ModelError(array_->file, ": dtype ", descr, ": bytes in another ",
                      "order: expected little-endian ones; convert it with ",
                      "x.astype(\"<", type, "\")");
  }
  return absl::OkStatus();
}

// Bytes that dims and dtype claim; nothing: more than there can be.
std::optional<uint64_t> ClaimedBytes(const NpyArray& array) {
  int64_t bytes = array.item_size;
  for (const int64_t dim : array.dims) {
    if (__builtin_mul_overflow(bytes, dim, &bytes)) return std::nullopt;
  }
  return static_cast<uint64_t>(bytes);
}

std::string KindName(char kind, int item_size) {
  switch (kind) {
    case 'b':
      return "bool";
    case 'i':
      return absl::StrCat("int", 8 * item_size);
    case 'u':
      return absl::StrCat("uint", 8 * item_size);
    default:
      return absl::StrCat("float", 8 * item_size);
  }
}

// Column-major elements in row-major order.
std::string ToRowMajor(const NpyArray& array) {
  const size_t size = array.item_size, rank = array.dims.size();
  std::string out(array.data.size(), '\0');
  std::vector<size_t> strides(rank), at(rank);
  for (size_t d = 0, stride = size; d < rank; ++d) {
    strides[d] = stride;
    stride *= array.dims[d];
  }
  size_t from = 0;
  for (size_t to = 0; to < out.size(); to += size) {
    std::memcpy(&out[to], array.data.data() + from, size);
    for (size_t d = rank; d-- > 0;) {
      from += strides[d];
      if (++at[d] < static_cast<size_t>(array.dims[d])) break;
      from -= strides[d] * at[d];
      at[d] = 0;
    }
  }
  return out;
}

// An element as the number that it is: int64_t, uint64_t or double.
template <typename T>
T Load(absl::string_view data, size_t i) {
  T value;
  std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <typename Wide, typename T>
Wide Widen(T value) {
  if constexpr (std::is_same_v<T, half>)
    return static_cast<float>(value);
  else
    return static_cast<Wide>(value);
}

// An f32 from which 16 bits are rounded as from the number itself: what f32
// does not hold makes the last bit 1 (Boldo and Melquiond, "When double
// rounding is odd").
float RoundedToOdd(double wide) {
  float narrow = static_cast<float>(wide);
  if (narrow == wide || std::isnan(wide)) return narrow;
  if (std::abs(narrow) > std::abs(wide)) narrow = std::nextafter(narrow, 0.0f);
  uint32_t bits = 0;
  std::memcpy(&bits, &narrow, sizeof(bits));
  bits |= 1;
  std::memcpy(&narrow, &bits, sizeof(bits));
  return narrow;
}

template <typename To, typename Wide>
bool Convert(Wide wide, To* to) {
  if constexpr (std::is_same_v<To, bool>) {
    *to = wide != 0;
    return wide == 0 || wide == 1;
  } else if constexpr (std::is_integral_v<To>) {
    *to = static_cast<To>(wide);
    return static_cast<Wide>(*to) == wide && (*to < 0) == (wide < 0);
  } else {
    *to =
        static_cast<To>(sizeof(To) < sizeof(float) ? RoundedToOdd(wide)
                                                   : static_cast<float>(wide));
    return std::isinf(static_cast<float>(*to)) == std::isinf(wide);
  }
}
template <>
bool Convert<double, double>(double wide, double* to) {
  *to = wide;
  return true;
}

// The index of the first element that does not fit; -1: all do.
template <typename From, typename Wide, typename To>
int64_t ConvertAll(absl::string_view data, std::string* made) {
  const size_t n = data.size() / sizeof(From);
  made->resize(n * sizeof(To));
  for (size_t i = 0; i < n; ++i) {
    To to;
    if (!Convert(Widen<Wide>(Load<From>(data, i)), &to)) {
      return static_cast<int64_t>(i);
    }
    std::memcpy(&(*made)[i * sizeof(To)], &to, sizeof(To));
  }
  return -1;
}

template <typename From, typename Wide>
int64_t ConvertInts(absl::string_view data, DType dtype, std::string* made) {
  switch (dtype) {
    case DType::kI32:
      return ConvertAll<From, Wide, int32_t>(data, made);
    case DType::kI64:
      return ConvertAll<From, Wide, int64_t>(data, made);
    case DType::kU8:
      return ConvertAll<From, Wide, uint8_t>(data, made);
    default:
      return ConvertAll<From, Wide, bool>(data, made);
  }
}

template <typename From>
int64_t ConvertFloats(absl::string_view data, DType dtype, std::string* made) {
  switch (dtype) {
    case DType::kF64:
      return ConvertAll<From, double, double>(data, made);
    case DType::kF16:
      return ConvertAll<From, double, half>(data, made);
    case DType::kBF16:
      return ConvertAll<From, double, bfloat16>(data, made);
    default:
      return ConvertAll<From, double, float>(data, made);
  }
}

int64_t ConvertElements(const NpyArray& array, absl::string_view data,
                        DType dtype, std::string* made) {
  const bool is_signed = array.kind == 'i';
  if (array.kind == 'f') {
    return array.item_size == 2   ? ConvertFloats<half>(data, dtype, made)
           : array.item_size == 4 ? ConvertFloats<float>(data, dtype, made)
                                  : ConvertFloats<double>(data, dtype, made);
  }
  switch (array.item_size) {
    case 1:
      return is_signed ? ConvertInts<int8_t, int64_t>(data, dtype, made)
                       : ConvertInts<uint8_t, int64_t>(data, dtype, made);
    case 2:
      return is_signed ? ConvertInts<int16_t, int64_t>(data, dtype, made)
                       : ConvertInts<uint16_t, int64_t>(data, dtype, made);
    case 4:
      return is_signed ? ConvertInts<int32_t, int64_t>(data, dtype, made)
                       : ConvertInts<uint32_t, int64_t>(data, dtype, made);
    default:
      return is_signed ? ConvertInts<int64_t, int64_t>(data, dtype, made)
                       : ConvertInts<uint64_t, uint64_t>(data, dtype, made);
  }
}

// "3.4e38 at [7,2]", of row-major element `i`.
std::string ElementText(const NpyArray& array, absl::string_view data,
                        int64_t i) {
  std::string made;
  const absl::string_view bytes =
      data.substr(i * array.item_size, array.item_size);
  std::string value;
  if (array.kind == 'f') {
    ConvertElements(array, bytes, DType::kF64, &made);
    value = ExactDouble(Load<double>(made, 0));
  } else if (array.kind == 'u' && array.item_size == 8) {
    value = absl::StrCat(Load<uint64_t>(bytes, 0));
  } else {
    ConvertElements(array, bytes, DType::kI64, &made);
    value = absl::StrCat(Load<int64_t>(made, 0));
  }
  std::vector<int64_t> at(array.dims.size());
  for (size_t d = at.size(); d-- > 0; i /= array.dims[d]) {
    at[d] = i % array.dims[d];
  }
  return absl::StrCat(value, " at [", absl::StrJoin(at, ","), "]");
}

bool IsExactly(const NpyArray& array, DType dtype) {
  // Bytes of a bool may be other than 0 and 1.
  return array.kind != 'b' &&
         KindName(array.kind, array.item_size) == NumpyName(dtype);
}

// What elements are to become for a feed of that dtype.
std::string CastTo(DType dtype) {
  return NumpyName(dtype == DType::kBF16 ? DType::kF32 : dtype);
}

}  // namespace

absl::StatusOr<NpyArray> ParseNpy(absl::string_view content,
                                  absl::string_view file,
                                  std::optional<DType> taken) {
  NpyArray array;
  array.file = std::string(file);
  if (!absl::StartsWith(content, kMagic) || content.size() < 12) {
    return ModelError(file, ": not an .npy file: expected one, as ",
                      "numpy.savez writes it", kSaveAgain);
  }
  const int version = static_cast<unsigned char>(content[6]);
  if (version < 1 || version > 3) {
    return ModelError(file, ": .npy format ", version, ": expected 1, 2 or 3; ",
                      "save it with another numpy");
  }
  const bool narrow = version == 1;  // the header's length takes 2 bytes, not 4
  const size_t header = narrow ? 10 : 12;
  const size_t length = narrow ? Load<uint16_t>(content.substr(8), 0)
                               : Load<uint32_t>(content.substr(8), 0);
  if (length > kLongestHeader || content.size() - header < length) {
    return ModelError(file, ": truncated or damaged: its header claims ",
                      length, " bytes, found ", content.size() - header,
                      kSaveAgain);
  }
  HT_RETURN_IF_ERROR(HeaderReader(content.substr(header, length),
                                  CastTo(taken.value_or(DType::kF32)), &array)
                         .Read());
  array.data = content.substr(header + length);
  const std::optional<uint64_t> claimed = ClaimedBytes(array);
  if (!claimed.has_value() || *claimed != array.data.size()) {
    return ModelError(file, ": truncated or damaged: expected ",
                      Describe(array), ", found ",
                      WithCommas(static_cast<int64_t>(array.data.size())),
                      " bytes of it", kSaveAgain);
  }
  return array;
}

std::string NumpyName(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return "bfloat16";
    case DType::kBool:
      return "bool";
    case DType::kU8:
      return "uint8";
    default:
      return absl::StrCat(IsFloat(dtype) ? "float" : "int", 8 * SizeOf(dtype));
  }
}

std::string Describe(const NpyArray& array) {
  return absl::StrCat(KindName(array.kind, array.item_size), "[",
                      absl::StrJoin(array.dims, ","), "]");
}

absl::StatusOr<absl::string_view> ElementsAs(const NpyArray& array, DType dtype,
                                             std::string* made,
                                             std::string* note) {
  const bool is_float = array.kind == 'f';
  const std::string kind = KindName(array.kind, array.item_size);
  const std::string wanted = NumpyName(dtype);
  if (is_float != IsFloat(dtype)) {
    return ModelError(array.file, ": ", kind, ", the model expects ", wanted,
                      "; convert it with x.astype(\"", CastTo(dtype), "\")",
                      is_float ? "" : ", scaled as the model wants it");
  }
  absl::string_view data = array.data;
  std::string row_major;
  if (array.fortran_order && array.dims.size() > 1) {
    row_major = ToRowMajor(array);
    data = row_major;
  }
  if (IsExactly(array, dtype)) {
    if (row_major.empty()) return data;
    *made = std::move(row_major);
    return absl::string_view(*made);
  }
  const int64_t bad = ConvertElements(array, data, dtype, made);
  if (bad >= 0) {
    return ModelError(array.file, ": ", ElementText(array, data, bad),
                      " does not fit ", wanted, ", which the model expects");
  }
  const bool narrows = SizeOf(dtype) < array.item_size ||
                       (dtype == DType::kBF16 && array.item_size == 2);
  if (is_float && narrows) {
    *note = absl::StrCat(array.file, ": ", kind, ", rounded to the ", wanted,
                         " that the model expects");
  }
  return absl::string_view(*made);
}

}  // namespace runtime
}  // namespace halftone
