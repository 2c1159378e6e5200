#include "tiers/kernel/cache_keeper.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernel/mm/text_patch.h"

namespace belljar::content_cache {
namespace {

constexpr std::int64_t kSettledSeconds = 2;  // coarser than the clock that files' times are taken from
constexpr int kBrokerDescriptors = 16;       // more than it has at its start
constexpr int kLockTries = 200;
constexpr timespec kLockPause{0, 100'000};

SysResult<std::uint64_t> mount_of(int fd, const char* path) {
  struct statx status{};
  if (::statx(fd, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &status) != 0)
    return std::unexpected(Errno{errno});
  return status.stx_mnt_id;
}

// Keepers of other sandboxes hold it for a few instructions. One that is stopped meanwhile must not stop others.
class CacheLock {
 public:
  explicit CacheLock(int file) : file_(file) {
    for (int i = 0; i < kLockTries && !is_held_; ++i) {
      is_held_ = ::flock(file_, LOCK_EX | LOCK_NB) == 0;
      if (!is_held_) ::nanosleep(&kLockPause, nullptr);
    }
  }
  ~CacheLock() {
    if (is_held_) ::flock(file_, LOCK_UN);
  }
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;
  bool is_held() const { return is_held_; }

 private:
  int file_;
  bool is_held_ = false;
};

// A private view of a part of the cache, which can be changed here.
class View {
 public:
  View(int file, std::uint64_t offset, std::uint64_t size)
      : size_(size),
        address_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, static_cast<off_t>(offset))) {}
  ~View() {
    if (is_mapped()) ::munmap(address_, size_);
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  bool is_mapped() const { return address_ != MAP_FAILED; }
  std::uint8_t* bytes() const { return static_cast<std::uint8_t*>(address_); }

 private:
  std::uint64_t size_;
  void* address_;
};

SysResult<void> write_at(int file, const std::uint8_t* bytes, std::uint64_t size, std::uint64_t offset) {
  while (size > 0) {
    const ssize_t count = ::pwrite(file, bytes, size, static_cast<off_t>(offset));
    if (count < 0) return std::unexpected(Errno{errno});
    bytes += count;
    offset += static_cast<std::uint64_t>(count);
    size -= static_cast<std::uint64_t>(count);
  }
  return {};
}

struct TextPart {
  std::uint64_t offset = 0;    // in the file
  std::uint64_t size = 0;      // 0: there is none
  std::uint64_t distance = 0;  // from the first trampoline
};

// The executable part of a program or library for this processor, as dynamic loaders map it.
TextPart find_text(const std::uint8_t* file, std::uint64_t size) {
  Elf64_Ehdr header;
  if (size < sizeof header) return {};
  std::memcpy(&header, file, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_machine != EM_X86_64 || header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > size ||
      header.e_phnum * sizeof(Elf64_Phdr) > size - header.e_phoff) {
    return {};
  }
  std::uint64_t low = ~0ULL;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    std::memcpy(&part, file + header.e_phoff + static_cast<std::uint64_t>(i) * sizeof part, sizeof part);
    if (part.p_type != PT_LOAD) continue;
    low = std::min<std::uint64_t>(low, kernel::page_down(part.p_vaddr));
    if ((part.p_flags & PF_X) == 0) continue;
    if (part.p_offset > size || part.p_filesz > size - part.p_offset || low > part.p_vaddr ||
        part.p_vaddr - low > size || (part.p_vaddr - part.p_offset) % kernel::kPageSize != 0) {
      return {};
    }
    const std::uint64_t begin = kernel::page_down(part.p_offset);
    return {begin, kernel::page_up(part.p_offset + part.p_filesz) - begin,
            kernel::page_down(part.p_vaddr) - low + kernel::kTrampolineSize};
  }
  return {};
}

}  // namespace

SysResult<Filler> Filler::open(Fd cache, std::span<const std::string> folders) {
  const Index index = TRY(Index::map(cache.get(), true));
  Filler filler(std::move(cache), index);
  for (const std::string& folder : folders) filler.mounts_.push_back(TRY(mount_of(AT_FDCWD, folder.c_str())));
  return filler;
}

bool Filler::is_of_image(int file) const {
  const auto mount = mount_of(file, "");
  return mount && std::ranges::find(mounts_, *mount) != mounts_.end();
}

SysResult<std::uint64_t> Filler::take(std::uint64_t size) {
  const CacheLock lock(cache_.get());
  if (!lock.is_held()) return std::unexpected(Errno{EAGAIN});
  const auto taken = index_.take(size);
  if (!taken) return std::unexpected(Errno{ENOSPC});
  return *taken;
}

SysResult<void> Filler::copy(int file, std::uint64_t size, std::uint64_t offset) const {
  std::vector<std::uint8_t> block(1U << 18);
  for (std::uint64_t done = 0; done < size;) {
    const ssize_t count = ::pread(file, block.data(), block.size(), static_cast<off_t>(done));
    if (count < 0) return std::unexpected(Errno{errno});
    if (count == 0 || static_cast<std::uint64_t>(count) > size - done) return std::unexpected(Errno{EAGAIN});
    TRY_VOID(write_at(cache_.get(), block.data(), static_cast<std::uint64_t>(count), offset + done));
    done += static_cast<std::uint64_t>(count);
  }
  return {};
}

SysResult<PatchedText> Filler::patch_part(std::uint64_t source, std::uint64_t size, std::uint64_t distance) {
  const View text(cache_.get(), source, size);
  if (!text.is_mapped()) return std::unexpected(Errno{errno});
  std::vector<std::uint8_t> trampolines(kernel::kTrampolineSize);
  const kernel::PatchCounts counts = kernel::patch_text(
      {.text = {text.bytes(), size}, .trampolines = trampolines, .distance = static_cast<std::int64_t>(distance)});
  if (counts.patched == 0) return PatchedText{};
  const std::uint64_t offset = TRY(take(kernel::kTrampolineSize + size));
  TRY_VOID(write_at(cache_.get(), trampolines.data(), counts.trampoline_bytes, offset));
  TRY_VOID(write_at(cache_.get(), text.bytes(), size, offset + kernel::kTrampolineSize));
  return PatchedText{source, size, distance, offset, kernel::page_up(counts.trampoline_bytes)};
}

SysResult<PatchedText> Filler::patch(std::uint64_t offset, std::uint64_t size) {
  const View file(cache_.get(), offset, size);
  if (!file.is_mapped()) return std::unexpected(Errno{errno});
  const TextPart part = find_text(file.bytes(), size);
  if (part.size == 0) return PatchedText{};
  return patch_part(offset + part.offset, part.size, part.distance);
}

SysResult<void> Filler::publish(const Record& record) {
  const CacheLock lock(cache_.get());
  if (!lock.is_held()) return std::unexpected(Errno{EAGAIN});
  if (index_.find(record.key) || index_.add(record)) return {};
  return std::unexpected(Errno{ENOSPC});
}

SysResult<void> Filler::put(int file) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return std::unexpected(Errno{errno});
  if (!S_ISREG(status.st_mode) || !is_of_image(file)) return std::unexpected(Errno{EXDEV});
  Record record;
  record.key = key_of(status);
  if (index_.find(record.key)) return {};
  if (record.key.size > kFileMost) return std::unexpected(Errno{EFBIG});
  if (::time(nullptr) - status.st_ctim.tv_sec < kSettledSeconds) return std::unexpected(Errno{EAGAIN});
  record.offset = TRY(take(record.key.size));
  TRY_VOID(copy(file, record.key.size, record.offset));
  record.text = TRY(patch(record.offset, record.key.size));
  if (::fstat(file, &status) != 0) return std::unexpected(Errno{errno});
  if (key_of(status) != record.key) return std::unexpected(Errno{EAGAIN});
  return publish(record);
}

namespace {

// The descriptor of one message; not open: the broker is gone, or it sent something else.
Fd receive_file(int socket) {
  char byte;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t count = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  const cmsghdr* const part = count > 0 ? CMSG_FIRSTHDR(&header) : nullptr;
  if (part == nullptr || part->cmsg_type != SCM_RIGHTS || part->cmsg_len != CMSG_LEN(sizeof(int))) return Fd();
  int fd;
  std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
  return Fd(fd);
}

[[noreturn]] void serve(int socket, Filler& filler) {
  while (true) {
    const Fd file = receive_file(socket);
    if (!file.is_open()) ::_exit(0);
    const bool is_kept = filler.put(file.get()).has_value();
    if (::send(socket, &is_kept, 1, MSG_NOSIGNAL) != 1) ::_exit(0);
  }
}

// The forked process. What can be written to is mapped here and not in the broker.
[[noreturn]] void become_keeper(int socket, Fd cache, std::span<const std::string> folders) {
  ::prctl(PR_SET_NAME, "belljar-keeper", 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  ::signal(SIGXFSZ, SIG_IGN);
  for (int fd = 0; fd < kBrokerDescriptors; ++fd) {
    if (fd != socket && fd != cache.get()) ::close(fd);
  }
  auto filler = Filler::open(std::move(cache), folders);
  if (!filler) ::_exit(1);
  serve(socket, *filler);
}

}  // namespace

void Keeper::start(Fd cache, std::span<const std::string> folders) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  Fd ours(ends[0]);
  const Fd its(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) become_keeper(its.get(), std::move(cache), folders);
  if (child < 0) return;
  socket_ = std::move(ours);
  process_ = child;
}

void Keeper::stop() {
  if (!socket_.is_open()) return;
  socket_.reset();
  ::waitpid(process_, nullptr, 0);
}

bool Keeper::keep(int file) const {
  if (!socket_.is_open()) return false;
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* const part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &file, sizeof file);
  bool is_kept = false;
  return ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL) == 1 && ::recv(socket_.get(), &is_kept, 1, 0) == 1 && is_kept;
}

}  // namespace belljar::content_cache
