#include "cli/image_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/utf8.h"
#include "cli/execute.h"
#include "cli/options.h"
#include "cli/run_command.h"
#include "spec/checks.h"
#include "spec/errors.h"
#include "spec/limits.h"
#include "spec/names.h"

namespace belljar {
namespace {

constexpr std::uint64_t kMinuteMs = 60'000;

// What a load may take.
constexpr LimitRow kLoadLimits[] = {
    {"max-size", "max-size", LimitUnit::bytes, 16 * kGiB, kMiB, 16 * kTiB, "the image's files, unpacked", "", nullptr},
    {"max-entries", "max-entries", LimitUnit::count, 1'000'000, 1, 100'000'000, "files, folders and links", "",
     nullptr},
    {"timeout", "timeout", LimitUnit::milliseconds, 10 * kMinuteMs, 100, 24 * 60 * kMinuteMs, "time to load", "",
     nullptr},
};

// Indexes of kOptions beyond the limits.
constexpr std::size_t kJson = 3;
constexpr std::size_t kHelp = 4;
constexpr Option kOptions[] = {
    {"max-size", "SIZE", "load: most bytes of the image's files, unpacked (default 16G)"},
    {"max-entries", "NUMBER", "load: most files, folders and links (default 1000000)"},
    {"timeout", "TIME", "load: most time that reading it may take (default 10 m)"},
    {"json", "", "print JSON"},
    {"help", "", "show this help"},
};
static_assert(std::size(kOptions) == std::size(kLoadLimits) + 2);

struct VerbRow {
  std::string_view name;
  ImageVerb verb;
  std::size_t operands;
  std::string_view usage;
};
constexpr VerbRow kVerbs[] = {
    {"load", ImageVerb::load, 2, "belljar image load NAME SOURCE"},
    {"ls", ImageVerb::ls, 0, "belljar image ls"},
    {"inspect", ImageVerb::inspect, 1, "belljar image inspect NAME|PATH"},
    {"rm", ImageVerb::rm, 1, "belljar image rm NAME|PATH"},
    {"gc", ImageVerb::gc, 0, "belljar image gc"},
};

Result<VerbRow> find_verb(std::string_view word) {
  std::vector<std::string_view> known;
  for (const VerbRow& row : kVerbs) {
    if (row.name == word) return row;
    known.push_back(row.name);
  }
  if (word.empty()) return fail(ErrorCode::usage, "image needs a word after it: load, ls, inspect, rm or gc");
  return fail(ErrorCode::usage, fmt::format("unknown command image {}; {}", one_line(word), name_hint(word, known)));
}

Result<void> set_limits(const ParsedOptions& parsed, ImageRequest& request) {
  std::uint64_t* const fields[] = {&request.bytes_max, &request.entries_max, &request.time_ms_max};
  for (std::size_t i = 0; i < std::size(kLoadLimits); ++i) *fields[i] = kLoadLimits[i].preset;
  for (const GivenOption& given : parsed.given) {
    if (given.option >= std::size(kLoadLimits)) continue;
    if (request.verb != ImageVerb::load) {
      return fail(ErrorCode::usage,
                  fmt::format("{} is for image load only", written_option(kOptions[given.option].name)));
    }
    const LimitRow& row = kLoadLimits[given.option];
    *fields[given.option] = TRY(parse_limit(row, given.value, written_option(row.flag)));
  }
  return {};
}

Result<ImageRequest> make_request(std::string_view word, const ParsedOptions& parsed) {
  const VerbRow row = TRY(find_verb(word));
  if (parsed.error) return std::unexpected(*parsed.error);
  ImageRequest request{.verb = row.verb, .json = is_given(parsed, kJson)};
  if (parsed.operands.size() != row.operands) {
    return fail(ErrorCode::usage, fmt::format("image {} takes {} argument{}, not {}: {}", row.name, row.operands,
                                              row.operands == 1 ? "" : "s", parsed.operands.size(), row.usage));
  }
  TRY_VOID(set_limits(parsed, request));
  if (row.operands > 0) {
    request.name = parsed.operands[0];
    const std::string where = fmt::format("image {}", row.name);
    TRY_VOID(row.verb == ImageVerb::load ? check_image_name(request.name, where)
                                         : check_image_reference(request.name, where));
  }
  if (row.operands > 1) {
    request.source = parsed.operands[1];
    TRY_VOID(check_path(request.source, "image load"));
  }
  return request;
}

}  // namespace

std::string image_help() {
  return "usage: belljar image load NAME SOURCE\n"
         "       belljar image ls\n"
         "       belljar image inspect NAME|PATH\n"
         "       belljar image rm NAME|PATH\n"
         "       belljar image gc\n\n"
         "Images are root file systems for belljar run --image NAME. SOURCE is an OCI archive or\n"
         "layout, a docker archive (docker save), or a root file system as tar archive or folder;\n"
         "archives and layers may be packed by gzip, zstd or xz. PATH is that of an image that\n"
         "belljar run --image PATH loaded. rm refuses what a sandbox runs on;\n"
         "gc removes what nothing leads to. Images are kept in the folder that BELLJAR_IMAGES names.\n\n" +
         options_help(kOptions);
}

int image_command(std::span<char* const> arguments) {
  const auto [word, ordered, parsed] = parse_word(kOptions, arguments);
  if (is_given(parsed, kHelp)) {
    return print(image_help());
  }
  const Result<ImageRequest> request = make_request(word, parsed);
  if (!request) return report_error(request.error(), is_given(parsed, kJson));
  return execute_image(*request);
}

}  // namespace belljar
