#include "seccomp/constants.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/memfd.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstring>

namespace belljar {
namespace {

struct Constant {
  std::string_view name;
  std::uint64_t value;
};

// IOPRIO_CLASS_SHIFT of ioprio_set(2). Not from <linux/ioprio.h>, which in Linux 6.1.192 is no C++: it names an
// argument "class".
constexpr unsigned kIoClassShift = 13;

#define CONSTANT(name) {#name, static_cast<std::uint64_t>(name)}
constexpr Constant kConstants[] = {
    // open(2); glibc's O_TMPFILE has O_DIRECTORY's bit in it, the kernel looks at this one
    CONSTANT(O_WRONLY),
    CONSTANT(O_RDWR),
    CONSTANT(O_TRUNC),
    CONSTANT(O_CREAT),
    {"O_TMPFILE_BIT", O_TMPFILE & ~O_DIRECTORY},
    // chmod(2), mknod(2)
    CONSTANT(S_ISUID),
    CONSTANT(S_ISGID),
    CONSTANT(S_IFMT),
    CONSTANT(S_IFREG),
    CONSTANT(S_IFIFO),
    CONSTANT(S_IFSOCK),
    CONSTANT(RLIMIT_CORE),
    // fcntl(2)
    CONSTANT(F_GETFL),
    CONSTANT(F_SETFD),
    CONSTANT(F_SETFL),
    // clone(2), unshare(2)
    CONSTANT(CLONE_VM),
    CONSTANT(CLONE_FS),
    CONSTANT(CLONE_FILES),
    CONSTANT(CLONE_SIGHAND),
    CONSTANT(CLONE_SYSVSEM),
    CONSTANT(CLONE_PARENT_SETTID),
    CONSTANT(CLONE_CHILD_SETTID),
    CONSTANT(SIGCHLD),
    CONSTANT(CLONE_THREAD),
    CONSTANT(CLONE_NEWNS),
    CONSTANT(CLONE_NEWCGROUP),
    CONSTANT(CLONE_NEWUTS),
    CONSTANT(CLONE_NEWIPC),
    CONSTANT(CLONE_NEWUSER),
    CONSTANT(CLONE_NEWPID),
    CONSTANT(CLONE_NEWNET),
    // socket(2); the kernel reads the type from the low four bits
    CONSTANT(AF_UNIX),
    CONSTANT(AF_INET),
    CONSTANT(AF_INET6),
    CONSTANT(AF_NETLINK),
    {"SOCK_TYPE_MASK", 0xf},
    CONSTANT(SOCK_STREAM),
    CONSTANT(SOCK_DGRAM),
    CONSTANT(SOCK_SEQPACKET),
    CONSTANT(SOCK_RAW),
    CONSTANT(SOCK_PACKET),
    CONSTANT(IPPROTO_IP),
    CONSTANT(IPPROTO_TCP),
    CONSTANT(IPPROTO_UDP),
    CONSTANT(NETLINK_ROUTE),
    // ioctl(2)
    CONSTANT(TIOCGWINSZ),
    CONSTANT(TIOCSTI),
    CONSTANT(TIOCLINUX),
    CONSTANT(TIOCSETD),
    CONSTANT(TIOCCONS),
    CONSTANT(FS_IOC_ENABLE_VERITY),
    CONSTANT(FS_IOC_SET_ENCRYPTION_POLICY),
    CONSTANT(FS_IOC_ADD_ENCRYPTION_KEY),
    // mmap(2), madvise(2), memfd_create(2)
    CONSTANT(PROT_EXEC),
    CONSTANT(MAP_HUGETLB),
    CONSTANT(MAP_SHARED),
    CONSTANT(MAP_PRIVATE),
    CONSTANT(MAP_FIXED),
    CONSTANT(MAP_FIXED_NOREPLACE),
    CONSTANT(MAP_ANONYMOUS),
    CONSTANT(MAP_NORESERVE),
    CONSTANT(MAP_STACK),
    CONSTANT(MAP_32BIT),
    CONSTANT(MREMAP_MAYMOVE),
    CONSTANT(MREMAP_FIXED),
    CONSTANT(MADV_MERGEABLE),
    CONSTANT(MADV_DONTNEED),
    CONSTANT(MADV_FREE),
    CONSTANT(MADV_REMOVE),
    CONSTANT(MADV_HUGEPAGE),
    CONSTANT(MADV_NOHUGEPAGE),
    CONSTANT(MADV_POPULATE_READ),
    CONSTANT(MFD_HUGETLB),
    CONSTANT(PRIO_PROCESS),
    CONSTANT(PRIO_USER),
    // sched_setscheduler(2), ioprio_set(2): the class stands above bit 13
    CONSTANT(SCHED_OTHER),
    CONSTANT(SCHED_BATCH),
    CONSTANT(SCHED_IDLE),
    CONSTANT(SCHED_RESET_ON_FORK),
    {"IOPRIO_CLASS_BITS", 0xffffffffu << kIoClassShift},
    {"IOPRIO_NONE", 0u << kIoClassShift},
    {"IOPRIO_BE", 2u << kIoClassShift},
    {"IOPRIO_IDLE", 3u << kIoClassShift},
    // futex(2), membarrier(2)
    CONSTANT(FUTEX_CMD_MASK),
    CONSTANT(FUTEX_WAIT),
    CONSTANT(FUTEX_WAKE),
    CONSTANT(FUTEX_REQUEUE),
    CONSTANT(FUTEX_CMP_REQUEUE),
    CONSTANT(FUTEX_WAKE_OP),
    CONSTANT(FUTEX_WAIT_BITSET),
    CONSTANT(FUTEX_WAKE_BITSET),
    CONSTANT(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE),
    // personality(2), seccomp(2)
    {"PER_QUERY", 0xffffffff},
    CONSTANT(PER_LINUX),
    CONSTANT(ADDR_NO_RANDOMIZE),
    CONSTANT(SECCOMP_FILTER_FLAG_NEW_LISTENER),
    // prctl(2)
    CONSTANT(PR_SET_PDEATHSIG),
    CONSTANT(PR_GET_PDEATHSIG),
    CONSTANT(PR_GET_DUMPABLE),
    CONSTANT(PR_SET_DUMPABLE),
    CONSTANT(PR_GET_KEEPCAPS),
    CONSTANT(PR_SET_KEEPCAPS),
    CONSTANT(PR_SET_NAME),
    CONSTANT(PR_GET_NAME),
    CONSTANT(PR_GET_TIMING),
    CONSTANT(PR_SET_TIMING),
    CONSTANT(PR_GET_SECCOMP),
    CONSTANT(PR_SET_SECCOMP),
    CONSTANT(PR_CAPBSET_READ),
    CONSTANT(PR_CAPBSET_DROP),
    CONSTANT(PR_GET_TSC),
    CONSTANT(PR_GET_SECUREBITS),
    CONSTANT(PR_SET_SECUREBITS),
    CONSTANT(PR_SET_TIMERSLACK),
    CONSTANT(PR_GET_TIMERSLACK),
    CONSTANT(PR_SET_MM),
    CONSTANT(PR_SET_CHILD_SUBREAPER),
    CONSTANT(PR_GET_CHILD_SUBREAPER),
    CONSTANT(PR_SET_NO_NEW_PRIVS),
    CONSTANT(PR_GET_NO_NEW_PRIVS),
    CONSTANT(PR_GET_TID_ADDRESS),
    CONSTANT(PR_SET_THP_DISABLE),
    CONSTANT(PR_GET_THP_DISABLE),
    CONSTANT(PR_CAP_AMBIENT),
    CONSTANT(PR_GET_SPECULATION_CTRL),
    CONSTANT(PR_SET_SPECULATION_CTRL),
    CONSTANT(PR_SET_VMA),
    CONSTANT(PR_SET_PTRACER),
    {"PR_SET_MDWE", 65},
    {"PR_GET_MDWE", 66},
};
#undef CONSTANT

constexpr int kErrnoMax = 200;  // above the last that errno(3) names

}  // namespace

std::optional<std::uint64_t> find_constant(std::string_view name) {
  for (const Constant& constant : kConstants) {
    if (constant.name == name) return constant.value;
  }
  return std::nullopt;
}

std::optional<std::uint16_t> find_errno(std::string_view name) {
  for (int value = 0; value <= kErrnoMax; ++value) {
    const char* known = strerrorname_np(value);
    if (known != nullptr && name == known) return static_cast<std::uint16_t>(value);
  }
  return std::nullopt;
}

std::string_view errno_name(std::uint16_t value) {
  const char* name = strerrorname_np(value);
  return name != nullptr ? name : "an unknown errno";
}

}  // namespace belljar
