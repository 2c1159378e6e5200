#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <expected>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/unseen.h"
#include "base/utf8.h"
#include "cli/execute.h"
#include "cli/run_command.h"
#include "files/apply.h"
#include "files/change_store.h"
#include "files/protected.h"
#include "files/text_diff.h"
#include "host/open_path.h"
#include "spec/errors.h"
#include "spec/limits.h"

namespace belljar {
namespace {

constexpr std::size_t kPathBytesShown = 4096;
constexpr std::size_t kShownBytesMax = std::size_t{4} << 20;  // of one file in a diff

Result<ChangeStore> open_store() {
  const auto lookup = [](const char* name) -> const char* { return std::getenv(name); };
  return ChangeStore::open(TRY(change_store_folder(lookup)));
}

std::string size_text(std::uint64_t bytes) {
  return bytes < kMiB ? fmt::format("{:.1f} KiB", static_cast<double>(bytes) / static_cast<double>(kKiB))
                      : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / static_cast<double>(kMiB));
}

std::string age_text(std::int64_t seconds) {
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} days", seconds / 86400);
}

// A name as it is where it is harmless, else in quotes with what a terminal would act on made visible.
std::string shown_name(const std::string& name) {
  const std::string quoted = quote(name, kPathBytesShown);
  return quoted.size() == name.size() + 2 ? name : quoted;
}

std::string neutral(std::string_view text) {
  std::string out;
  TerminalNeutraliser neutraliser;
  neutraliser.feed(text, out);
  neutraliser.finish(out);
  return out;
}

Json change_row(const Change& change) {
  Json row = Json::object();
  put_bytes(row, "path", change.path);
  row["change"] = file_change_name(change.change);
  row["kind"] = change.kind == FileKind::folder ? "folder" : change.kind == FileKind::link ? "link" : "file";
  row["size"] = change.size;
  row["sha256"] = change.sha256;
  if (change.change == FileChange::deleted) return row;
  if (change.kind == FileKind::link) put_bytes(row, "link_target", change.link_target);
  if (change.kind == FileKind::regular) row["executable"] = change.is_executable;
  return row;
}

Result<std::string> list(const ChangesRequest& request) {
  const ChangeStore store = TRY(open_store());
  const std::int64_t now = ::time(nullptr);
  Json sets = Json::array();
  std::string text = fmt::format("{:<9} {:>8} {:>10} {:>8} {}\n", "ID", "AGE", "SIZE", "CHANGES", "WORKSPACE");
  for (const ListedChangeset& set : store.list()) {
    if (!set.damage.empty()) {
      text += fmt::format("{:<9} {}; belljar changes discard {} removes them\n", set.id, one_line(set.damage), set.id);
      sets.push_back(Json{{"id", set.id},
                          {"workspace", ""},
                          {"created_at", nullptr},
                          {"age_s", nullptr},
                          {"size", 0},
                          {"changes", Json::array()},
                          {"damage", one_line(set.damage)}});
      continue;
    }
    const std::int64_t created_s = set.changeset.created_ns / 1'000'000'000;
    const std::int64_t age_s = std::max<std::int64_t>(0, now - created_s);
    text += fmt::format("{:<9} {:>8} {:>10} {:>8} {}\n", set.id, age_text(age_s), size_text(set.size),
                        set.changeset.changes.size(), shown_name(set.changeset.workspace));
    Json changes = Json::array();
    for (const Change& change : set.changeset.changes) changes.push_back(change_row(change));
    Json row = {{"id", set.id}};
    put_bytes(row, "workspace", set.changeset.workspace);
    row["created_at"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(created_s)));
    row["age_s"] = age_s;
    row["size"] = set.size;
    row["changes"] = std::move(changes);
    row["damage"] = nullptr;
    sets.push_back(std::move(row));
  }
  return request.json ? dump_json({{"changesets", std::move(sets)}}) + "\n" : text;
}

// A file's content, or why it can't be shown.
using Content = std::expected<std::string, std::string>;

std::unexpected<std::string> not_shown(std::string_view which, int error) {
  return std::unexpected(error == EFBIG ? fmt::format("not shown: {} is too large", which)
                                        : fmt::format("not shown: {} can't be read: {}", which, errno_text(error)));
}

// The content on the host, as the program saw it.
Content read_before(const Change& change, int workspace_fd) {
  constexpr std::string_view kWhich = "the file on the host";
  const auto file = host::open_on_same_mount(workspace_fd, change.path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file && file.error().value == ENOENT) return std::unexpected("not shown: the file is not on the host any more");
  struct stat status{};
  if (!file) return not_shown(kWhich, file.error().value);
  if (::fstat(file->get(), &status) != 0) return not_shown(kWhich, errno);
  if (!S_ISREG(status.st_mode)) return std::unexpected("not shown: there is no plain file on the host any more");
  auto content = read_all(file->get(), kShownBytesMax);
  return content ? Content(std::move(*content)) : not_shown(kWhich, content.error().value);
}

Content read_after(const KeptChangeset& kept, const Change& change) {
  const auto file = open_at(kept.contents.get(), change.sha256.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (!file && file.error().value == ENOENT) return std::unexpected("not shown: its new content is not kept any more");
  auto content = file ? read_all(file->get(), kShownBytesMax) : SysResult<std::string>(std::unexpected(file.error()));
  if (!content) return not_shown("its new content", content.error().value);
  if (sha256_of(*content) != change.sha256) return std::unexpected("not shown: its kept content is damaged");
  return std::move(*content);
}

// A carriage return moves to the line's start, and characters that nobody sees hide things: both are shown.
std::string with_hidden_shown(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    const bool is_character = step.kind == Utf8Step::Kind::character;
    const char32_t c = is_character ? step.code_point : 0;
    if (c == '\r') {
      shown += "\\r";
    } else if (is_character && misleads_reader(c)) {
      shown += fmt::format("\\u{{{:x}}}", static_cast<std::uint32_t>(c));
    } else {
      shown += text.substr(0, step.length);
    }
    text.remove_prefix(step.length);
  }
  return shown;
}

std::string file_diff(const KeptChangeset& kept, const Change& change, int workspace_fd) {
  const std::string name = shown_name(change.path);
  Content before = "";
  Content after = "";
  if (change.change != FileChange::added && workspace_fd >= 0) before = read_before(change, workspace_fd);
  if (change.change != FileChange::deleted) after = read_after(kept, change);
  const auto summary = [&](std::string_view why) {
    const std::string sizes = change.change == FileChange::added ? size_text(change.size)
                              : change.change == FileChange::deleted
                                  ? size_text(change.before.size)
                                  : fmt::format("{} -> {}", size_text(change.before.size), size_text(change.size));
    return fmt::format("{}: {} ({})\n", name, why, sizes);
  };
  if (!after) return summary(after.error());
  if (!before) return summary(before.error());
  if (is_binary(*before) || is_binary(*after)) return summary("binary");
  const std::string hunks = unified_hunks(*before, *after);
  if (hunks.empty()) return "";
  const bool is_all_new = change.change == FileChange::added || workspace_fd < 0;
  return fmt::format("--- {}\n+++ {}\n{}", is_all_new ? "/dev/null" : "a/" + name,
                     change.change == FileChange::deleted ? "/dev/null" : "b/" + name,
                     neutral(with_hidden_shown(hunks)));
}

// Whether it comes in the place of something that is deleted with it.
bool replaces_kept(const KeptChangeset& kept, const Change& change) {
  return change.change == FileChange::added && std::ranges::any_of(kept.changeset.changes, [&](const Change& other) {
           return other.change == FileChange::deleted &&
                  (change.path == other.path || change.path.starts_with(other.path + "/"));
         });
}

std::string change_diff(const KeptChangeset& kept, const Change& change, int workspace_fd) {
  std::string kind = change.kind == FileKind::folder ? "folder" : "file";
  std::string what;
  if (change.kind == FileKind::link) {
    kind = "symbolic link";
    if (change.change != FileChange::deleted) what = " -> " + quote(change.link_target, kPathBytesShown);
  } else if (change.kind == FileKind::regular && change.change != FileChange::deleted && change.is_executable) {
    kind = "executable file";
  }
  std::string note;
  const HostSide side = workspace_fd < 0 ? HostSide::as_before : compare_host_side(change, workspace_fd);
  if (side == HostSide::different && !replaces_kept(kept, change)) note = "; the host's side has changed since the run";
  if (side == HostSide::as_changed) note = "; applied already";
  std::string text =
      fmt::format("{} {} {}{}{}\n", file_change_name(change.change), kind, shown_name(change.path), what, note);
  if (change.kind == FileKind::regular) text += file_diff(kept, change, workspace_fd);
  return text;
}

// Each change is written as it is made: together they may be large.
Result<std::string> diff(const ChangesRequest& request) {
  const ChangeStore store = TRY(open_store());
  const KeptChangeset kept = TRY(store.take(request.id, ChangesetUse::reading));
  const auto selected = TRY(select_changes(kept.changeset, request.paths));
  const auto workspace = open_changed_folder(kept.changeset);
  if (!workspace)
    say(fmt::format("{}; only what is kept can be shown, without what it was before", workspace.error().message));
  const int workspace_fd = workspace ? workspace->get() : -1;
  for (const Change* change : selected) {
    const auto written = write_all(STDOUT_FILENO, change_diff(kept, *change, workspace_fd));
    if (!written) {
      return fail(ErrorCode::output_lost,
                  fmt::format("the output can't be written: {}", errno_text(written.error().value)));
    }
  }
  return "";
}

Json left_out_json(const std::vector<LeftOut>& left_out) {
  Json rows = Json::array();
  for (const LeftOut& left : left_out) {
    Json row = Json::object();
    put_bytes(row, "path", left.path);
    row["reason"] = one_line(left.reason);
    row["changes"] = left.changes;
    rows.push_back(std::move(row));
  }
  return rows;
}

// `text` goes to stdout, `notes` to stderr; `complaint` says that not all was done.
struct Reply {
  std::string text;
  std::vector<std::string> notes;
  std::optional<Error> complaint;
};

Result<Reply> apply(const ChangesRequest& request) {
  const ChangeStore store = TRY(open_store());
  KeptChangeset kept = TRY(store.take(request.id, ChangesetUse::working));
  const Applied applied = TRY(apply_changes(kept, request.paths));
  TRY_VOID(store.put_back(kept));
  std::string text;
  Json changes = Json::array();
  for (const Change& change : applied.applied) {
    text += fmt::format("{} {}\n", file_change_name(change.change), shown_name(change.path));
    changes.push_back(change_row(change));
  }
  if (request.json) {
    text = dump_json({{"applied", std::move(changes)}, {"left_out", left_out_json(applied.left_out)}}) + "\n";
  }
  Reply reply{.text = std::move(text)};
  std::size_t left = 0;
  for (const LeftOut& row : applied.left_out) {
    const std::string count = row.changes > 1 ? fmt::format(" ({} changes)", row.changes) : "";
    reply.notes.push_back(fmt::format("not applied: {}{}: {}", quote(row.path, kPathBytesShown), count, row.reason));
    left += row.changes;
  }
  if (left > 0) {
    reply.complaint =
        Error{ErrorCode::bad_changes, fmt::format("{} of {} changes were left out, and are still kept as {}", left,
                                                  left + applied.applied.size(), kept.id)};
  }
  return reply;
}

Result<std::string> discard(const ChangesRequest& request) {
  const ChangeStore store = TRY(open_store());
  const KeptChangeset kept = TRY(store.take(request.id, ChangesetUse::discarding));
  if (const auto workspace = open_changed_folder(kept.changeset)) clear_leftovers(kept, workspace->get());
  TRY_VOID(store.remove(kept));
  return fmt::format("discarded {}\n", kept.id);
}

Result<Reply> carry_out(const ChangesRequest& request) {
  switch (request.verb) {
    case ChangesVerb::list:
      return Reply{TRY(list(request)), {}, std::nullopt};
    case ChangesVerb::diff:
      return Reply{TRY(diff(request)), {}, std::nullopt};
    case ChangesVerb::apply:
      return apply(request);
    case ChangesVerb::discard:
      return Reply{TRY(discard(request)), {}, std::nullopt};
  }
  return fail(ErrorCode::internal, "a changes command without a body");
}

}  // namespace

int execute_changes(const ChangesRequest& request) {
  const auto reply = carry_out(request);
  if (!reply) return report_error(reply.error(), request.json);
  const int printed = print(reply->text);
  for (const std::string& note : reply->notes) say(note);
  if (const auto& complaint = reply->complaint) return report_error(*complaint, false);
  return printed;
}

}  // namespace belljar
