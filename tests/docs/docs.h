// The pages of docs/ that are derived from what the product knows of itself.
#ifndef HALFTONE_TESTS_DOCS_DOCS_H_
#define HALFTONE_TESTS_DOCS_DOCS_H_

#include <string>
#include <vector>

namespace halftone {
namespace docs {

// What a derived page says of itself.
extern const char kDerived[];

std::string StrategyPage();  // what fields declare and resolving gives
std::string OpsPage();       // `halftone ops --json`
std::string CliPage();       // --help of every verb, codes

// A table; cells of any text.
std::string MarkdownTable(const std::vector<std::string>& head,
                          const std::vector<std::vector<std::string>>& rows);
// `text`
std::string Code(const std::string& text);

}  // namespace docs
}  // namespace halftone

#endif  // HALFTONE_TESTS_DOCS_DOCS_H_
