// JPEG through libjpeg(-turbo).
// libjpeg's headers take the first one for granted.
// clang-format off
#include <cstdio>
#include <jerror.h>
#include <jpeglib.h>
// clang-format on

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "graph/base/error.h"
#include "runtime/data/image/formats.h"

namespace halftone {
namespace runtime {
namespace {

// Columns and rows around what is wanted that are decoded with it, so that
// chroma at its border is interpolated as inside a picture.
constexpr int64_t kMargin = 16;

// A progressive file of few bytes can ask for any number of passes over the
// whole picture.
constexpr int kMostScans = 200;

struct Library {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf failed;
  char message[JMSG_LENGTH_MAX];
};

Library& LibraryOf(j_common_ptr info) {
  return *static_cast<Library*>(info->client_data);
}

[[noreturn]] void Fail(j_common_ptr info) {
  Library& library = LibraryOf(info);
  info->err->format_message(info, library.message);
  std::longjmp(library.failed, 1);
}

// The library goes on with gray where data ends early; other warnings are of
// bytes that pictures of some cameras have between their parts.
void Warn(j_common_ptr info, int level) {
  if (level != -1) return;
  const int code = info->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER) Fail(info);
}

void LimitScans(j_common_ptr info) {
  auto* picture = reinterpret_cast<j_decompress_ptr>(info);
  if (picture->input_scan_number <= kMostScans) return;
  Library& library = LibraryOf(info);
  info->err->msg_code = 0;
  std::snprintf(library.message, sizeof(library.message),
                "it has more than %d scans", kMostScans);
  std::longjmp(library.failed, 1);
}

void Quiet(j_common_ptr) {}

// What the first EXIF marker before the pixels says. The library would keep
// all markers of its kind in a list that it walks for each.
int OrientationInFile(absl::string_view bytes) {
  constexpr absl::string_view kExif("Exif\0\0", 6);
  constexpr char kScan = '\xda', kExifMarker = '\xe1';
  const auto byte = [bytes](size_t i) {
    return static_cast<size_t>(static_cast<uint8_t>(bytes[i]));
  };
  for (size_t i = 2; i + 4 <= bytes.size() && bytes[i] == '\xff';) {
    const char marker = bytes[i + 1];
    const size_t length = byte(i + 2) << 8 | byte(i + 3);
    if (marker == kScan || length < 2 || i + 2 + length > bytes.size()) break;
    const absl::string_view data = bytes.substr(i + 4, length - 2);
    if (marker == kExifMarker && absl::StartsWith(data, kExif)) {
      return OrientationOf(data.substr(kExif.size()));
    }
    i += 2 + length;
  }
  return 1;
}

class JpegDecoder : public ImageDecoder {
 public:
  JpegDecoder(absl::string_view bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {
    std::memset(&library_, 0, sizeof(library_));
    jpeg_decompress_struct& info = library_.info;
    info.err = jpeg_std_error(&library_.errors);
    info.client_data = &library_;
    library_.errors.error_exit = Fail;
    library_.errors.emit_message = Warn;
    library_.errors.output_message = Quiet;
  }
  ~JpegDecoder() override { jpeg_destroy_decompress(&library_.info); }

  absl::Status ReadHeader();
  absl::Status Decode(const Wanted& wanted, Image* out, RealBox* box) override;

 private:
  // In each of these the library may come back to setjmp: nothing in their
  // frames has a destructor.
  bool TryHeader();
  bool TryStart(const Wanted& wanted);
  bool TryRows(Image* out);

  absl::Status Broken() const {
    if (library_.errors.msg_code == JERR_OUT_OF_MEMORY) {
      return OutOfMemoryError(name_, ": ", library_.message);
    }
    return ModelError(name_, ": a broken JPEG picture: ", library_.message,
                      "; take it out, or set train.broken_samples: \"skip\"");
  }

  absl::string_view bytes_;
  std::string name_;
  Library library_;
  int orientation_ = 1;
  // Of the scaled picture: the columns and rows that are decoded.
  JDIMENSION left_ = 0, columns_ = 0, top_ = 0, rows_ = 0;
  std::vector<uint8_t> line_;  // CMYK, before it is RGB
};

bool JpegDecoder::TryHeader() {
  if (setjmp(library_.failed) != 0) return false;
  jpeg_decompress_struct& info = library_.info;
  jpeg_create_decompress(&info);
  info.client_data = &library_;
  library_.progress.progress_monitor = LimitScans;
  info.progress = &library_.progress;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes_.data()),
               bytes_.size());
  jpeg_read_header(&info, TRUE);
  return true;
}

absl::Status JpegDecoder::ReadHeader() {
  if (!TryHeader()) return Broken();
  orientation_ = OrientationInFile(bytes_);
  width_ = library_.info.image_width;
  height_ = library_.info.image_height;
  if (orientation_ >= 5) std::swap(width_, height_);
  return absl::OkStatus();
}

// Halves, while that leaves enough: those the library has fast code for. Of
// colours that have half as many pixels in one direction alone, those go with
// the picture's; in both, the library halves them once less.
int ScaleOf(const Wanted& wanted, bool halves_colours) {
  const int64_t each = halves_colours ? 4 : 2;
  int64_t scale = 1;
  while (scale < 8 && wanted.box.width >= each * scale * wanted.least_width &&
         wanted.box.height >= each * scale * wanted.least_height) {
    scale *= 2;
  }
  return static_cast<int>(scale);
}

bool JpegDecoder::TryStart(const Wanted& wanted) {
  if (setjmp(library_.failed) != 0) return false;
  jpeg_decompress_struct& info = library_.info;
  // With four samples of luma for one of colour the library's scaled pixels
  // next to a crop are not those of the whole picture (2.1.5).
  const bool usual = info.max_h_samp_factor <= 2 && info.max_v_samp_factor <= 2;
  const bool halves =
      info.max_h_samp_factor != info.max_v_samp_factor && wanted.channels != 1;
  const int scale = usual ? ScaleOf(wanted, halves) : 1;
  info.scale_num = 1;
  info.scale_denom = scale;
  const bool inks =
      info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = inks                   ? JCS_CMYK
                         : wanted.channels == 1 ? JCS_GRAYSCALE
                                                : JCS_RGB;
  jpeg_start_decompress(&info);
  columns_ = info.output_width;
  rows_ = info.output_height;
  if (orientation_ != 1) return true;
  const Box& box = wanted.box;
  const auto first = [scale](int64_t at) {
    return static_cast<JDIMENSION>(std::max<int64_t>(at / scale - kMargin, 0));
  };
  const auto count = [scale](int64_t end, JDIMENSION from, JDIMENSION most) {
    const int64_t last = (end + scale - 1) / scale + kMargin;
    return std::min<JDIMENSION>(static_cast<JDIMENSION>(last), most) - from;
  };
  left_ = first(box.x);
  columns_ = count(box.x + box.width, left_, info.output_width);
  top_ = first(box.y);
  rows_ = count(box.y + box.height, top_, info.output_height);
  if (columns_ < info.output_width) {
    jpeg_crop_scanline(&info, &left_, &columns_);
  }
  if (top_ > 0) jpeg_skip_scanlines(&info, top_);
  return true;
}

bool JpegDecoder::TryRows(Image* out) {
  if (setjmp(library_.failed) != 0) return false;
  jpeg_decompress_struct& info = library_.info;
  const bool inks = info.out_color_space == JCS_CMYK;
  // Adobe's inks are stored inverted: 255 is none.
  const int flip = info.saw_Adobe_marker ? 0 : 255;
  for (JDIMENSION y = 0; y < rows_; ++y) {
    uint8_t* to = out->row(y);
    JSAMPROW row = inks ? line_.data() : to;
    jpeg_read_scanlines(&info, &row, 1);
    if (!inks) continue;
    for (JDIMENSION x = 0; x < columns_; ++x, row += 4) {
      const int black = row[3] ^ flip;
      const auto light = [&](int c) {
        return ((row[c] ^ flip) * black + 127) / 255;
      };
      if (out->channels == 1) {
        *to++ = LumaOf(light(0), light(1), light(2));
      } else {
        for (int c = 0; c < 3; ++c) *to++ = static_cast<uint8_t>(light(c));
      }
    }
  }
  return true;
}

absl::Status JpegDecoder::Decode(const Wanted& wanted, Image* out,
                                 RealBox* box) {
  if (!TryStart(wanted)) return Broken();
  const jpeg_decompress_struct& info = library_.info;
  out->Resize(columns_, rows_, wanted.channels);
  line_.resize(info.out_color_space == JCS_CMYK ? 4 * columns_ : 0);
  if (!TryRows(out)) return Broken();
  TurnUpright(orientation_, out);
  const double scale = info.scale_denom;
  *box = {wanted.box.x / scale - left_, wanted.box.y / scale - top_,
          wanted.box.width / scale, wanted.box.height / scale};
  // Scaled pixels count from the file's first, which may lie at the end; the
  // last of them then stands for more than there is.
  if (IsFromRight(orientation_)) {
    box->x += static_cast<double>(out->width) - width_ / scale;
  }
  if (IsFromBottom(orientation_)) {
    box->y += static_cast<double>(out->height) - height_ / scale;
  }
  return absl::OkStatus();
}

}  // namespace

bool IsJpeg(absl::string_view bytes) {
  return absl::StartsWith(bytes, "\xff\xd8\xff");
}

absl::StatusOr<std::unique_ptr<ImageDecoder>> OpenJpeg(absl::string_view bytes,
                                                       std::string name) {
  auto decoder = std::make_unique<JpegDecoder>(bytes, std::move(name));
  HT_RETURN_IF_ERROR(decoder->ReadHeader());
  return decoder;
}

}  // namespace runtime
}  // namespace halftone
