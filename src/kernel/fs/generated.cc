#include "kernel/fs/generated.h"

#include <fcntl.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "kernel/fs/generated_inodes.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

// The part of `path` that comes right below `folder`; empty where it is not below it.
std::string_view part_below(std::string_view path, std::string_view folder) {
  if (!folder.empty()) {
    if (path.size() <= folder.size() || path.substr(0, folder.size()) != folder || path[folder.size()] != '/')
      return {};
    path.remove_prefix(folder.size() + 1);
  }
  return path.substr(0, std::min(path.find('/'), path.size()));
}

// What of a part comes before its number: "cpu" of "cpu[n]". Nothing of a constant part does.
std::string_view prefix_of(std::string_view part) {
  return part.substr(0, std::min(part.find('['), part.size()));
}

bool is_constant(std::string_view part) {
  return part.find('[') == std::string_view::npos;
}

// "12", but not "012", "+12" or "".
bool parse_number(std::string_view text, std::uint32_t& number) {
  if (text.empty() || text.size() > 9 || (text.size() > 1 && text.front() == '0')) return false;
  number = 0;
  for (const char character : text) {
    if (character < '0' || character > '9') return false;
    number = number * 10 + static_cast<std::uint32_t>(character - '0');
  }
  return true;
}

Timestamp now() {
  const auto time = read_clock(CLOCK_REALTIME);
  if (!time) return {};
  return {static_cast<std::int64_t>(*time / kNanosecondsPerSecond),
          static_cast<std::uint32_t>(*time % kNanosecondsPerSecond)};
}

// A number for each row, folder and subject: 15 bits each of process and thread, 13 of the row and how deep in its path
// (so that folders have one of their own), 20 of the descriptor.
std::uint64_t inode_number(const GeneratedPlace& place) {
  const auto depth = static_cast<std::uint64_t>(std::count(place.path.begin(), place.path.end(), '/'));
  const auto process = static_cast<std::uint64_t>(place.subject.process);
  const auto thread = static_cast<std::uint64_t>(place.subject.thread);
  const auto fd = static_cast<std::uint64_t>(place.subject.number + 1) & 0xf'ffff;
  return process << 48 | thread << 33 | ((place.index * 8 + depth + 1) & 0x1fff) << 20 | fd;
}

void fill(Inode& inode, const GeneratedPlace& place, std::uint32_t mode) {
  const Owner owner = place.tree->owner == nullptr ? Owner{0, 0} : place.tree->owner(place.subject);
  inode.number = inode_number(place);
  inode.device = place.device;
  inode.mode = mode;
  inode.uid = owner.uid;
  inode.gid = owner.gid;
  inode.links = S_ISDIR(mode) ? 2 : 1;
  inode.access_time = inode.modify_time = inode.change_time = inode.birth_time = now();
}

template <typename T>
SysResult<Ref<Inode>> make(const GeneratedPlace& place, std::uint32_t mode) {
  Ref<T> inode = make_ref<T>(place);
  if (!inode) return error(ENOMEM);
  fill(*inode, place, mode);
  if (place.row != nullptr) inode->rdev = place.row->rdev;
  return Ref<Inode>(std::move(inode));
}

SysResult<Ref<Inode>> make_inode(const GeneratedPlace& place) {
  if (place.row == nullptr) return make<GeneratedFolder>(place, S_IFDIR | 0555);
  const std::uint32_t mode = place.row->mode;
  if (S_ISDIR(mode)) return make<GeneratedFolder>(place, mode);
  if (S_ISLNK(mode)) return make<GeneratedLink>(place, mode);
  return make<GeneratedInode>(place, mode);
}

}  // namespace

SysResult<void> GeneratedInode::change(const AttributeChange& change) {
  if (change.set_mode || change.set_uid || change.set_gid || change.set_access || change.set_modify)
    return error(EPERM);
  return {};
}

Inode::Space GeneratedInode::space() {
  return {.magic = place_.tree->magic};
}

SysResult<void> GeneratedInode::make_text(LongText& to) const {
  const GeneratedRow& row = *place_.row;
  if (row.text == nullptr) {
    to << row.constant;
  } else {
    TRY_VOID(row.text(place_.subject, to));
  }
  if (!to.is_whole()) return error(ENOMEM);
  return {};
}

SysResult<Ref<File>> GeneratedInode::open(Ref<Dentry> dentry, std::uint32_t flags) {
  Ref<Inode> self = Ref<Inode>::of(this);
  if (place_.row->open != nullptr) return place_.row->open(std::move(self), std::move(dentry), flags);
  Ref<GeneratedFile> file = make_ref<GeneratedFile>(std::move(self), std::move(dentry));
  if (!file) return error(ENOMEM);
  return Ref<File>(std::move(file));
}

SysResult<std::size_t> GeneratedLink::read_link(char* to, std::size_t to_size) {
  LongText text;
  TRY_VOID(make_text(text));
  const std::size_t count = std::min(text.size(), to_size);
  std::memcpy(to, text.text().data(), count);
  return count;
}

SysResult<Ref<Dentry>> GeneratedLink::follow_magic() {
  return place().row->place(place().subject);
}

// Constant names go before numbers.
SysResult<Ref<Inode>> GeneratedFolder::lookup(std::string_view name) {
  const std::span<const GeneratedRow> rows = place().tree->rows;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const std::string_view part = part_below(rows[index].path, place().path);
    if (part == name && is_constant(part)) return make_inode(below(index, part));
  }
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const std::string_view part = part_below(rows[index].path, place().path);
    const NumberedPart* const numbered = find_numbered(part);
    const std::string_view prefix = prefix_of(part);
    std::uint32_t wanted = 0;
    if (numbered == nullptr || name.substr(0, prefix.size()) != prefix) continue;
    if (!parse_number(name.substr(prefix.size()), wanted)) continue;
    GeneratedPlace found = below(index, part);
    if (!numbered->enter(found.subject, wanted)) return error(ENOENT);
    return make_inode(found);
  }
  return error(ENOENT);
}

const NumberedPart* GeneratedFolder::find_numbered(std::string_view part) const {
  for (const NumberedPart& numbered : place().tree->numbered) {
    if (numbered.part == part) return &numbered;
  }
  return nullptr;
}

// The row itself where its path ends with the part, a folder on the way to it otherwise.
GeneratedPlace GeneratedFolder::below(std::size_t index, std::string_view part) const {
  const GeneratedRow& row = place().tree->rows[index];
  GeneratedPlace found = place();
  const std::size_t length = place().path.empty() ? part.size() : place().path.size() + 1 + part.size();
  found.path = row.path.substr(0, length);
  found.row = row.path.size() == length ? &row : nullptr;
  found.index = index;
  return found;
}

SysResult<Ref<File>> GeneratedFolder::open(Ref<Dentry> dentry, std::uint32_t) {
  Ref<GeneratedFolderFile> file = make_ref<GeneratedFolderFile>(Ref<Inode>::of(this), std::move(dentry));
  if (!file) return error(ENOMEM);
  return Ref<File>(std::move(file));
}

// Positions: 0 is ".", 1 "..", then (row + 2) << 32, and of a row that stands for numbers the lowest number to come.
SysResult<void> GeneratedFolder::list(EntryWriter& to, std::uint64_t* position) {
  constexpr const char* kDots[] = {".", ".."};
  while (*position < 2) {
    const std::uint64_t after = *position == 0 ? 1 : 2ULL << 32;
    if (!TRY(to.add(number, S_IFDIR, kDots[*position], after))) return {};
    *position = after;
  }
  const std::span<const GeneratedRow> rows = place().tree->rows;
  for (std::size_t index = (*position >> 32) - 2; index < rows.size(); ++index) {
    const std::string_view part = part_below(rows[index].path, place().path);
    if (!part.empty() && is_first(index, part) && !TRY(list_row(to, index, part, position))) return {};
    *position = (index + 3) << 32;
  }
  return {};
}

bool GeneratedFolder::is_first(std::size_t index, std::string_view part) const {
  for (std::size_t before = 0; before < index; ++before) {
    if (part_below(place().tree->rows[before].path, place().path) == part) return false;
  }
  return true;
}

// False: the writer is full.
SysResult<bool> GeneratedFolder::list_row(EntryWriter& to, std::size_t index, std::string_view part,
                                          std::uint64_t* position) const {
  GeneratedPlace entry = below(index, part);
  const std::uint32_t type = entry.row == nullptr ? std::uint32_t{S_IFDIR} : entry.row->mode;
  const NumberedPart* const numbered = find_numbered(part);
  if (numbered == nullptr) return to.add(inode_number(entry), type, part, (index + 3) << 32);
  while (true) {
    const auto at = static_cast<std::uint32_t>(*position);
    const std::int64_t next = numbered->next(place().subject, at);
    if (next < 0) return true;
    const auto found = static_cast<std::uint32_t>(next);
    char digits[32];
    TextWriter writer(digits, sizeof digits);
    const std::string_view name = (writer << prefix_of(part)).number(found).text();
    const std::uint64_t after = (index + 2) << 32 | (found + 1);
    // One that has just gone is passed over.
    entry.subject = place().subject;
    if (numbered->enter(entry.subject, found) && !TRY(to.add(inode_number(entry), type, name, after))) return false;
    *position = after;
  }
}

SysResult<std::uint64_t> GeneratedFolderFile::list(Buffers& to, std::uint64_t* position) {
  EntryWriter writer(to);
  TRY_VOID(static_cast<GeneratedFolder&>(*inode()).list(writer, position));
  return writer.finish();
}

// The text is made when the file is read from its beginning, so that reading on tells of one moment.
SysResult<std::uint64_t> GeneratedFile::read(Buffers& to, std::uint64_t* position) {
  if (*position == 0 || !has_text_) {
    LongText made;
    TRY_VOID(static_cast<GeneratedInode&>(*inode()).make_text(made));
    const LockGuard guard(text_lock_);
    text_ = std::move(made);
    has_text_ = true;
  }
  const LockGuard guard(text_lock_);
  const std::string_view text = text_.text();
  if (*position >= text.size()) return 0;
  const std::size_t count = std::min<std::uint64_t>(text.size() - *position, to.left());
  TRY_VOID(to.put(text.data() + *position, count));
  *position += count;
  return count;
}

SysResult<std::uint64_t> GeneratedFile::write(Buffers& from, std::uint64_t* position) {
  constexpr std::size_t kWriteMax = 256;
  const auto& place = static_cast<GeneratedInode&>(*inode()).place();
  if (place.row->write == nullptr) return error(EPERM);
  if (from.left() > kWriteMax) return error(EINVAL);
  char text[kWriteMax];
  const std::size_t size = from.left();
  TRY_VOID(from.take(text, size));
  TRY_VOID(place.row->write(place.subject, {text, size}));
  *position += size;
  return size;
}

SysResult<Ref<Inode>> make_generated_file_system(const GeneratedTree& tree) {
  return make_inode({.tree = &tree, .device = tree.device});
}

}  // namespace belljar::kernel
