#include "kernel/ipc/nameless.h"

#include <fcntl.h>

#include "kernel/arena/roots.h"
#include "kernel/base/text.h"
#include "kernel/task/process.h"

namespace belljar::kernel {

NamelessFacts NamelessFacts::make() {
  const Credentials& who = current().credentials;
  return {.number = arena_roots().nameless_files.fetch_add(1, std::memory_order_relaxed) + 1,
          .uid = who.fsuid,
          .gid = who.fsgid};
}

void fill_nameless_stat(struct stat* status, const NamelessFacts& facts, std::uint32_t mode, std::uint32_t device) {
  *status = {};
  status->st_dev = device;
  status->st_ino = facts.number;
  status->st_mode = mode;
  status->st_nlink = 1;
  status->st_uid = facts.uid;
  status->st_gid = facts.gid;
  status->st_blksize = 4096;
}

std::size_t describe_numbered(char* text, std::size_t size, std::string_view kind, std::uint64_t number) {
  TextWriter writer(text, size);
  writer << kind << ":[";
  writer.number(number) << ']';
  return writer.text().size();
}

std::size_t describe_text(char* text, std::size_t size, std::string_view description) {
  TextWriter writer(text, size);
  writer << description;
  return writer.text().size();
}

SysResult<void> AnonymousFile::stat(struct stat* status) {
  fill_nameless_stat(status, {.number = 1}, 0600, kAnonymousDevice);
  return {};
}

std::size_t AnonymousFile::describe(char* text, std::size_t size) const {
  TextWriter writer(text, size);
  writer << "anon_inode:" << name_;
  return writer.text().size();
}

SysResult<int> add_new_file(Ref<File> file, std::uint32_t access, std::uint32_t flags) {
  if (!file) return error(ENOMEM);
  file->set_flags(access | (flags & O_NONBLOCK));
  return current().files->add(std::move(file), (flags & O_CLOEXEC) != 0 ? CloseOnExec::yes : CloseOnExec::no);
}

}  // namespace belljar::kernel
