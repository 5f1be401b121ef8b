#include "tools/report/html.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/display.h"

namespace halftone {
namespace tools {
namespace {

constexpr char kStyle[] = R"(
body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1200px;
 padding:0 1em;color:#1a1a1a;background:#fff}
pre,.n{font-family:ui-monospace,monospace;font-size:13px}
pre{background:#f4f4f4;padding:.8em;overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:2px 10px 2px 4px;vertical-align:top}
th{border-bottom:1px solid #999}td.r,th.r{text-align:right}
details{margin-left:1em}summary{cursor:pointer}
.f16,.bf16{background:#dcefdc}.f32{background:#f6e3cf}
.other{background:#e8e8e8}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}
 pre{background:#222}.f16,.bf16{background:#1d3a1d}.f32{background:#45311a}
 .other{background:#333}}
)";

// Hides the rows that do not contain what was typed.
constexpr char kScript[] = R"(
const box=document.getElementById('filter');
if(box)box.addEventListener('input',()=>{const text=box.value.toLowerCase();
 for(const row of document.querySelectorAll('tbody tr'))
  row.hidden=text!==''&&!row.textContent.toLowerCase().includes(text),
  row.style.display=row.hidden?'none':'';
 if(text)for(const d of document.querySelectorAll('details'))d.open=true;});
)";

}  // namespace

std::string HtmlEscaped(absl::string_view text) {
  return absl::StrReplaceAll(Printable(text), {{"&", "&amp;"},
                                               {"<", "&lt;"},
                                               {">", "&gt;"},
                                               {"\"", "&quot;"},
                                               {"'", "&#39;"}});
}

std::string HtmlTable(std::vector<std::string> head,
                      const std::vector<std::vector<std::string>>& rows,
                      const std::vector<std::string>& classes) {
  std::string html = "<table><thead><tr>";
  std::vector<const char*> align;
  for (std::string& cell : head) {
    align.push_back(cell[0] == '>' ? " class=\"r\"" : "");
    if (cell[0] == '>') cell.erase(0, 1);
    absl::StrAppend(&html, "<th", align.back(), ">", HtmlEscaped(cell),
                    "</th>");
  }
  html += "</tr></thead><tbody>\n";
  for (size_t r = 0; r < rows.size(); ++r) {
    absl::StrAppend(&html, "<tr",
                    classes.empty() ? "" : " class=\"" + classes[r] + "\"",
                    ">");
    for (size_t c = 0; c < rows[r].size(); ++c) {
      absl::StrAppend(&html, "<td", align[c], ">", HtmlEscaped(rows[r][c]),
                      "</td>");
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

std::string HtmlFilter() {
  return "<input id=\"filter\" placeholder=\"filter\">";
}

std::string HtmlSection(absl::string_view title, bool open,
                        absl::string_view content) {
  return absl::StrCat("<details", open ? " open" : "", "><summary><b>",
                      HtmlEscaped(title), "</b></summary>\n", content,
                      "</details>\n");
}

std::string HtmlPage(absl::string_view title, absl::string_view body,
                     absl::string_view style, absl::string_view script) {
  const std::string name = HtmlEscaped(title);
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">",
      "<title>", name, "</title><style>", kStyle, style,
      "</style></head><body>\n", "<h1>", name, "</h1>\n", body, "<script>",
      kScript, script, "</script></body></html>\n");
}

}  // namespace tools
}  // namespace halftone
