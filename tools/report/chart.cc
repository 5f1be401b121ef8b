#include "tools/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/log/words.h"
#include "tools/report/html.h"

namespace halftone {
namespace tools {
namespace {

// In units of the viewBox.
constexpr double kWidth = 1000, kHeight = 240;
constexpr double kLeft = 70, kRight = 990, kTop = 10, kBottom = 215;
constexpr int kColours = 8;

struct Axes {
  double first = std::numeric_limits<double>::infinity(), last = 0;  // steps
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  bool log = false;

  double X(double step) const {
    return kLeft + (kRight - kLeft) * (step - first) / (last - first);
  }
  double Scaled(double value) const { return log ? std::log10(value) : value; }
  double Y(double value) const {
    const double from = Scaled(least), to = Scaled(most);
    return kBottom - (kBottom - kTop) * (Scaled(value) - from) / (to - from);
  }
};

double MiddleOf(const ThinnedSeries::Bucket& bucket) {
  return (bucket.first_step + bucket.last_step) / 2;
}

Axes AxesOf(const std::vector<Curve>& curves) {
  Axes axes;
  for (const Curve& curve : curves) {
    for (const auto& bucket : curve.series->buckets()) {
      axes.first = std::min(axes.first, bucket.first_step);
      axes.last = std::max(axes.last, bucket.last_step);
      if (bucket.count == 0) continue;
      axes.least = std::min(axes.least, bucket.least);
      axes.most = std::max(axes.most, bucket.most);
    }
  }
  axes.log = axes.least > 0 && axes.most > kLogFrom * axes.least;
  if (axes.last <= axes.first) {
    // A step above 2^53 and the next one are the same number.
    axes.last = std::max(axes.first + 1, axes.first * 1.1);
  }
  if (axes.most <= axes.least) {  // a level line
    const double room = axes.most == 0 ? 1 : std::abs(axes.most) / 10;
    axes.least -= room;
    axes.most += room;
  }
  return axes;
}

void AppendPoint(std::string* path, char command, double x, double y) {
  absl::StrAppendFormat(path, "%c%.1f %.1f", command, x, y);
}

std::string LineOf(const ThinnedSeries& series, const Axes& axes) {
  std::string path;
  bool gap = true;
  for (const auto& bucket : series.buckets()) {
    if (bucket.count > 0) {
      AppendPoint(&path, gap ? 'M' : 'L', axes.X(MiddleOf(bucket)),
                  axes.Y(bucket.mean()));
    }
    gap = bucket.count == 0;
  }
  return path;
}

// Round every run of buckets that have values: along the tops and back.
std::string BandOf(const ThinnedSeries& series, const Axes& axes) {
  const auto& buckets = series.buckets();
  std::string path;
  for (size_t begin = 0; begin < buckets.size(); ++begin) {
    size_t end = begin;
    while (end < buckets.size() && buckets[end].count > 0) ++end;
    if (end - begin > 1) {
      for (size_t i = begin; i < end; ++i) {
        AppendPoint(&path, i == begin ? 'M' : 'L', axes.X(MiddleOf(buckets[i])),
                    axes.Y(buckets[i].most));
      }
      for (size_t i = end; i > begin; --i) {
        AppendPoint(&path, 'L', axes.X(MiddleOf(buckets[i - 1])),
                    axes.Y(buckets[i - 1].least));
      }
      path += 'Z';
    }
    begin = end;
  }
  return path;
}

bool HasBand(const ThinnedSeries& series) {
  return std::any_of(series.buckets().begin(), series.buckets().end(),
                     [](const auto& bucket) { return bucket.count > 1; });
}

// 1, 2 or 5 times a power of ten: about `lines` of them between the two.
double GridStep(double from, double to, int lines) {
  const double raw = (to - from) / lines;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

// The multiples of `step` between the two, which are few as GridStep chose it.
// Counted by an integer: a large double does not grow by one.
std::vector<double> Multiples(double from, double to, double step) {
  constexpr int kMostLines = 16;
  const double first = std::ceil(from / step);
  std::vector<double> values;
  for (int i = 0; i < kMostLines && (first + i) * step <= to; ++i) {
    const double value = (first + i) * step;
    if (values.empty() || value > values.back()) values.push_back(value);
  }
  return values;
}

std::vector<double> GridValues(const Axes& axes) {
  if (axes.log) {
    std::vector<double> values;
    const int from = static_cast<int>(std::ceil(std::log10(axes.least)));
    const int to = static_cast<int>(std::floor(std::log10(axes.most)));
    const int stride = std::max(1, (to - from) / 5);
    for (int power = from; power <= to; power += stride) {
      values.push_back(std::pow(10.0, power));
    }
    return values;
  }
  return Multiples(axes.least, axes.most, GridStep(axes.least, axes.most, 4));
}

std::string GridHtml(const Axes& axes) {
  std::string svg;
  for (double value : GridValues(axes)) {
    const double y = axes.Y(value);
    absl::StrAppendFormat(&svg,
                          "<path class=\"grid\" d=\"M%.0f %.1fH%.0f\"/>"
                          "<text class=\"y\" x=\"%.0f\" y=\"%.1f\">%s</text>",
                          kLeft, y, kRight, kLeft - 6, y + 4,
                          runtime::ThreeDigits(value));
  }
  const double step = std::max(1.0, GridStep(axes.first, axes.last, 8));
  for (double value : Multiples(axes.first, axes.last, step)) {
    absl::StrAppendFormat(&svg,
                          "<text class=\"x\" x=\"%.1f\" y=\"%.0f\">%.0f</text>",
                          axes.X(value), kBottom + 18, value);
  }
  return svg;
}

std::string MarksHtml(const ThinnedSeries& marks, const Axes& axes) {
  std::string path;
  for (const auto& bucket : marks.buckets()) {
    const double x = axes.X(MiddleOf(bucket));
    if (x < kLeft || x > kRight) continue;
    absl::StrAppendFormat(&path, "M%.1f %.0fV%.0f", x, kBottom, kBottom - 12);
  }
  return path.empty() ? ""
                      : absl::StrCat("<path class=\"mark\" d=\"", path, "\"/>");
}

std::string CurveHtml(const Curve& curve, const Axes& axes) {
  const int colour = curve.colour % kColours;
  std::string svg;
  if (HasBand(*curve.series)) {
    absl::StrAppend(&svg, "<path class=\"band c", colour, "\" d=\"",
                    BandOf(*curve.series, axes), "\"/>");
  }
  absl::StrAppend(&svg, "<path class=\"line c", colour,
                  curve.dashed ? " dashed" : "", "\" data-label=\"",
                  HtmlEscaped(curve.label), "\" d=\"",
                  LineOf(*curve.series, axes), "\"/>\n");
  return svg;
}

}  // namespace

const char kChartStyle[] = R"(
svg{width:100%;display:block}svg text{font-size:11px;fill:currentColor}
.y{text-anchor:end}.x{text-anchor:middle}
.grid{stroke:#8884;fill:none}.line{fill:none;stroke-width:1.5}
.dashed{stroke-dasharray:5 3}.band{opacity:.18;stroke:none}
.mark{stroke:#d22;stroke-width:1}.cursor{stroke:#8888}
.legend span{margin-right:1.5em}.at{color:#777}
.c0{stroke:#1f6fb4;fill:#1f6fb4}.c1{stroke:#e0750a;fill:#e0750a}
.c2{stroke:#2b9a2b;fill:#2b9a2b}.c3{stroke:#c02a2a;fill:#c02a2a}
.c4{stroke:#8455b5;fill:#8455b5}.c5{stroke:#7f5145;fill:#7f5145}
.c6{stroke:#c45fa6;fill:#c45fa6}.c7{stroke:#17909f;fill:#17909f}
path.line{fill:none}path.band{stroke:none}
)";

// Finds each line's point nearest to the pointer, and says its value.
const char kChartScript[] = R"(
for(const svg of document.querySelectorAll('svg.chart')){
 const a=svg.dataset,f=+a.first,l=+a.last,lo=+a.least,hi=+a.most,log=a.log==='1';
 const lines=[...svg.querySelectorAll('.line')].map(p=>({label:p.dataset.label,
  points:p.getAttribute('d').split(/[ML]/).filter(Boolean)
   .map(t=>t.split(' ').map(Number))}));
 const at=svg.parentNode.querySelector('.at');
 const cursor=svg.querySelector('.cursor');
 const number=v=>Math.abs(v)>=1e6||(v!==0&&Math.abs(v)<1e-4)?v.toExponential(3):
  +v.toPrecision(5);
 svg.addEventListener('pointermove',e=>{
  const box=svg.getBoundingClientRect();
  const x=(e.clientX-box.left)/box.width*1000;
  const step=f+(x-70)/920*(l-f);
  if(step<f||step>l)return;
  cursor.setAttribute('d','M'+x+' 10V215');
  at.textContent='step '+Math.round(step)+lines.map(line=>{
   let best=null;
   for(const p of line.points)
    if(best===null||Math.abs(p[0]-x)<Math.abs(best[0]-x))best=p;
   if(best===null)return '';
   const part=(215-best[1])/205;
   const v=log?Math.pow(10,Math.log10(lo)+part*(Math.log10(hi)-Math.log10(lo))):
    lo+part*(hi-lo);
   return '; '+line.label+' '+number(v);}).join('');});
}
)";

std::string ChartHtml(const std::string& title,
                      const std::vector<Curve>& curves,
                      const ThinnedSeries* marks) {
  const Axes axes = AxesOf(curves);
  if (!(axes.least <= axes.most)) return "";
  std::string legend, lines;
  for (const Curve& curve : curves) {
    absl::StrAppend(&legend,
                    "<span><svg style=\"width:1em;display:inline\" viewBox=\"0 "
                    "0 10 10\"><path class=\"c",
                    curve.colour % kColours, "\" d=\"M0 2H10V8H0Z\"/></svg> ",
                    HtmlEscaped(curve.label), curve.dashed ? " (dashed)" : "",
                    "</span>");
    lines += CurveHtml(curve, axes);
  }
  if (marks != nullptr) lines += MarksHtml(*marks, axes);
  return absl::StrCat(
      "<figure><figcaption><b>", HtmlEscaped(title), "</b> ",
      "<span class=\"legend\">", legend, "</span><span class=\"at\"></span>",
      "</figcaption>\n<svg class=\"chart\" viewBox=\"0 0 ", kWidth, " ",
      kHeight, "\" data-first=\"", axes.first, "\" data-last=\"", axes.last,
      "\" data-least=\"", axes.least, "\" data-most=\"", axes.most,
      "\" data-log=\"", axes.log ? 1 : 0, "\">", GridHtml(axes), "\n", lines,
      "<path class=\"cursor\" d=\"\"/></svg></figure>\n");
}

}  // namespace tools
}  // namespace halftone
