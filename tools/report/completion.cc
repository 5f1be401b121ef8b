#include "tools/report/completion.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/schema/op_registry.h"
#include "graph/strategy/fields.h"
#include "graph/zoo/zoo.h"
#include "passes/report.h"
#include "tools/common/launch_command.h"
#include "tools/report/explain_report.h"

namespace halftone {
namespace tools {
namespace {

// To bash a = is a word, and what is offered takes the place of what is behind
// it.
constexpr char kBash[] = R"(# source <(halftone completion bash)
_halftone() {
  local IFS=$'\n' i word words=() typed
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    if ((i > 1)) && [[ ${COMP_WORDS[i]} == = || ${COMP_WORDS[i-1]} == = ]]; then
      words[-1]+=${COMP_WORDS[i]}
    else
      words+=("${COMP_WORDS[i]}")
    fi
  done
  typed=${words[-1]}
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    COMPREPLY+=("${word#"${typed%"${typed##*=}"}"}")
  done < <(halftone completion --words -- "${words[@]}" 2>/dev/null)
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -o bashdefault -F _halftone halftone
)";

constexpr char kZsh[] = R"(#compdef halftone
# halftone completion zsh > "${fpath[1]}/_halftone"
_halftone() {
  local line
  local -a offered
  for line in "${(@f)$(halftone completion --words -- \
      "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && offered+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( ${#offered} )); then
    _describe halftone offered
  else
    _files
  fi
}
if [[ $funcstack[1] == _halftone ]]; then _halftone; else compdef _halftone halftone; fi
)";

constexpr char kFish[] = R"(# halftone completion fish | source
function __halftone_words
    set -l offered (halftone completion --words -- \
        (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $offered) -gt 0
        printf '%s\n' $offered
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c halftone -f -a '(__halftone_words)'
)";

std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

const VerbDoc* FindVerb(const VerbDoc& above, const std::string& name) {
  for (const VerbDoc& verb : above.verbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

const FlagDoc* FindFlag(const VerbDoc& verb, const std::string& name) {
  for (const FlagDoc& flag : verb.flags) {
    if (std::find(flag.names.begin(), flag.names.end(), name) !=
        flag.names.end()) {
      return &flag;
    }
  }
  return nullptr;
}

std::vector<Candidate> FieldPaths() {
  std::vector<Candidate> paths;
  for (const StrategyField& field : StrategyFields()) {
    if (field.kind != StrategyField::Kind::kField) continue;
    paths.push_back({field.path + "=", field.facts->doc()});
  }
  return paths;
}

// "train.tail=": the words of the field.
std::vector<Candidate> FieldWords(const std::string& path) {
  std::vector<Candidate> words;
  const StrategyField* field = FindStrategyField(path);
  if (field == nullptr) return words;
  for (const std::string& word : field->facts->word()) {
    words.push_back({absl::StrCat(path, "=", word), ""});
  }
  return words;
}

std::vector<Candidate> Named(const std::vector<std::string>& names) {
  std::vector<Candidate> candidates;
  for (const std::string& name : names) candidates.push_back({name, ""});
  return candidates;
}

std::vector<Candidate> OpNames() {
  std::vector<Candidate> ops;
  for (const OpSchema* schema : Ops().All()) {
    if (!schema->internal()) ops.push_back({schema->name(), schema->doc()});
  }
  return ops;
}

// What a flag takes, `typed` so far.
std::vector<Candidate> ValuesOf(const FlagDoc& flag, const std::string& typed) {
  const std::string& name = flag.shown();
  if (name == "--set") {
    const size_t equals = typed.find('=');
    return equals == std::string::npos ? FieldPaths()
                                       : FieldWords(typed.substr(0, equals));
  }
  if (name == "--white" || name == "--black") return OpNames();
  return Named(ListedWords(flag.help));
}

// What a verb's words without a flag may be, where it is no file.
std::vector<Candidate> WordsOf(const VerbDoc& verb) {
  if (verb.name == "zoo") return Named(ZooNames());
  if (verb.name == "ops") return OpNames();
  for (const FlagDoc& flag : verb.flags) {
    if (!flag.names.empty()) continue;
    const std::vector<std::string> words = ListedWords(flag.help);
    if (!words.empty()) return Named(words);
  }
  return {};
}

std::vector<Candidate> FlagsOf(const VerbDoc& verb) {
  std::vector<Candidate> flags;
  for (const FlagDoc& flag : verb.flags) {
    for (const std::string& name : flag.names) {
      if (absl::StartsWith(name, "--")) {
        flags.push_back({name, FirstLine(flag.help)});
      }
    }
  }
  return flags;
}

// The verb whose flags and words come next: `ckpt ls`, or that behind
// `launch`.
const VerbDoc* VerbOf(const VerbDoc& program,
                      absl::Span<const std::string> words) {
  const VerbDoc* verb = &program;
  for (const std::string& word : words) {
    const VerbDoc* below = FindVerb(*verb, word);
    if (below == nullptr && verb->takes_command && IsRankVerb(word)) {
      below = FindVerb(program, word);
    }
    if (below != nullptr) verb = below;
  }
  return verb;
}

std::vector<Candidate> StartingWith(std::vector<Candidate> candidates,
                                    const std::string& typed) {
  candidates.erase(std::remove_if(candidates.begin(), candidates.end(),
                                  [&](const Candidate& candidate) {
                                    return !absl::StartsWith(candidate.word,
                                                             typed);
                                  }),
                   candidates.end());
  return candidates;
}

// `--level=O`: whole words again, as shells replace what was typed.
std::vector<Candidate> BehindEquals(const VerbDoc& verb,
                                    const std::string& typed) {
  const size_t equals = typed.find('=');
  const FlagDoc* flag = FindFlag(verb, typed.substr(0, equals));
  if (flag == nullptr) return {};
  std::vector<Candidate> values = ValuesOf(*flag, typed.substr(equals + 1));
  for (Candidate& value : values) {
    value.word = absl::StrCat(typed.substr(0, equals), "=", value.word);
  }
  return values;
}

}  // namespace

std::vector<std::string> ListedWords(const std::string& help) {
  const std::string listed = help.substr(0, help.find_first_of(";\n"));
  const std::vector<std::string> parts = absl::StrSplit(listed, " | ");
  if (parts.size() < 2) return {};
  std::vector<std::string> words;
  for (size_t i = 0; i < parts.size(); ++i) {
    // Before what is in brackets: "f32 (default)".
    std::vector<std::string> tokens = absl::StrSplit(
        parts[i].substr(0, parts[i].find('(')), ' ', absl::SkipEmpty());
    if (tokens.empty()) return {};
    std::string word = i == 0 ? tokens.back() : tokens.front();
    word = std::string(absl::StripSuffix(absl::StripSuffix(word, ","), ":"));
    // Numbers are examples: "500 (steps) | never", "N | auto", "0,3 | all".
    if (word.size() > 1 && absl::ascii_isalpha(word[0])) words.push_back(word);
  }
  return words;
}

std::vector<Candidate> CandidatesFor(const VerbDoc& program,
                                     absl::Span<const std::string> words) {
  if (words.empty()) return {};
  const std::string& typed = words.back();
  const auto before = words.subspan(0, words.size() - 1);
  const VerbDoc& verb = *VerbOf(program, before);
  const FlagDoc* flag =
      before.empty() ? nullptr : FindFlag(verb, before.back());
  std::vector<Candidate> candidates;
  if (flag != nullptr && flag->takes_value) {
    candidates = ValuesOf(*flag, typed);
  } else if (absl::StartsWith(typed, "-")) {
    candidates = absl::StrContains(typed, '=') ? BehindEquals(verb, typed)
                                               : FlagsOf(verb);
  } else if (!verb.verbs.empty() || verb.takes_command) {
    for (const VerbDoc& below : (verb.takes_command ? program : verb).verbs) {
      if (verb.takes_command && !IsRankVerb(below.name)) continue;
      candidates.push_back({below.name, below.summary});
    }
  } else {
    candidates = WordsOf(verb);
  }
  return StartingWith(std::move(candidates), typed);
}

absl::StatusOr<std::string> CompletionScript(const std::string& shell) {
  if (shell == "bash") return std::string(kBash);
  if (shell == "zsh") return std::string(kZsh);
  if (shell == "fish") return std::string(kFish);
  const std::vector<std::string> known = {"bash", "zsh", "fish", "man"};
  return UsageError("completion: expected bash, zsh, fish or man, found \"",
                    shell, "\"", NearestHint(shell, known));
}

}  // namespace tools
}  // namespace halftone
