// User and group ids, groups, capabilities (credentials(7), capabilities(7)). Each belongs to a thread; the C library
// carries changes to the others. No task has a capability, whatever its uid.
#include <linux/capability.h>

#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kKeep = ~0U;  // -1 as an argument: no change

// The three ids of one kind, and the one that file systems go by.
struct Ids {
  std::uint32_t& real;
  std::uint32_t& effective;
  std::uint32_t& saved;
  std::uint32_t& file_system;

  bool has(std::uint32_t id) const { return id == real || id == effective || id == saved; }
};

Ids user_ids() {
  Credentials& own = current().credentials;
  return {own.uid, own.euid, own.suid, own.fsuid};
}

Ids group_ids() {
  Credentials& own = current().credentials;
  return {own.gid, own.egid, own.sgid, own.fsgid};
}

// setuid(2), setgid(2)
SyscallResult set_id(const Ids& ids, std::uint32_t id) {
  if (id == kKeep) return error(EINVAL);
  if (id != ids.real && id != ids.saved) return error(EPERM);
  ids.effective = ids.file_system = id;
  return 0;
}

// setreuid(2), setregid(2)
SyscallResult set_real_and_effective(const Ids& ids, std::uint32_t real, std::uint32_t effective) {
  if (real != kKeep && real != ids.real && real != ids.effective) return error(EPERM);
  if (effective != kKeep && !ids.has(effective)) return error(EPERM);
  const std::uint32_t old_real = ids.real;
  if (real != kKeep) ids.real = real;
  if (effective != kKeep) ids.effective = effective;
  if (real != kKeep || (effective != kKeep && effective != old_real)) ids.saved = ids.effective;
  ids.file_system = ids.effective;
  return 0;
}

// setresuid(2), setresgid(2)
SyscallResult set_all(const Ids& ids, std::uint32_t real, std::uint32_t effective, std::uint32_t saved) {
  for (const std::uint32_t id : {real, effective, saved})
    if (id != kKeep && !ids.has(id)) return error(EPERM);
  if (real != kKeep) ids.real = real;
  if (effective != kKeep) ids.effective = effective;
  if (saved != kKeep) ids.saved = saved;
  ids.file_system = ids.effective;
  return 0;
}

// getresuid(2), getresgid(2)
SyscallResult tell_all(const Ids& ids, const SyscallArguments& arguments) {
  TRY_VOID(copy_out(arguments.get<UserAddress>(0), ids.real));
  TRY_VOID(copy_out(arguments.get<UserAddress>(1), ids.effective));
  TRY_VOID(copy_out(arguments.get<UserAddress>(2), ids.saved));
  return 0;
}

// setfsuid(2), setfsgid(2): an id that may not be taken is passed over in silence.
SyscallResult set_file_system_id(const Ids& ids, std::uint32_t id) {
  const std::uint32_t old = ids.file_system;
  if (ids.has(id) || id == old) ids.file_system = id;
  return old;
}

// The words of data that a version of capget(2) has. EINVAL tells the version that this kernel knows.
SysResult<std::size_t> capability_words(const __user_cap_header_struct& header, UserAddress header_address) {
  switch (header.version) {
    case _LINUX_CAPABILITY_VERSION_1:
      return _LINUX_CAPABILITY_U32S_1;
    case _LINUX_CAPABILITY_VERSION_2:
    case _LINUX_CAPABILITY_VERSION_3:
      return _LINUX_CAPABILITY_U32S_3;
    default:
      TRY_VOID(copy_out(header_address, std::uint32_t{_LINUX_CAPABILITY_VERSION_3}));
      return error(EINVAL);
  }
}

}  // namespace

SyscallResult sys_getuid(const SyscallArguments&) {
  return current().credentials.uid;
}

SyscallResult sys_geteuid(const SyscallArguments&) {
  return current().credentials.euid;
}

SyscallResult sys_getgid(const SyscallArguments&) {
  return current().credentials.gid;
}

SyscallResult sys_getegid(const SyscallArguments&) {
  return current().credentials.egid;
}

SyscallResult sys_setuid(const SyscallArguments& arguments) {
  return set_id(user_ids(), arguments.get<std::uint32_t>(0));
}

SyscallResult sys_setgid(const SyscallArguments& arguments) {
  return set_id(group_ids(), arguments.get<std::uint32_t>(0));
}

SyscallResult sys_setreuid(const SyscallArguments& arguments) {
  return set_real_and_effective(user_ids(), arguments.get<std::uint32_t>(0), arguments.get<std::uint32_t>(1));
}

SyscallResult sys_setregid(const SyscallArguments& arguments) {
  return set_real_and_effective(group_ids(), arguments.get<std::uint32_t>(0), arguments.get<std::uint32_t>(1));
}

SyscallResult sys_setresuid(const SyscallArguments& arguments) {
  return set_all(user_ids(), arguments.get<std::uint32_t>(0), arguments.get<std::uint32_t>(1),
                 arguments.get<std::uint32_t>(2));
}

SyscallResult sys_setresgid(const SyscallArguments& arguments) {
  return set_all(group_ids(), arguments.get<std::uint32_t>(0), arguments.get<std::uint32_t>(1),
                 arguments.get<std::uint32_t>(2));
}

SyscallResult sys_getresuid(const SyscallArguments& arguments) {
  return tell_all(user_ids(), arguments);
}

SyscallResult sys_getresgid(const SyscallArguments& arguments) {
  return tell_all(group_ids(), arguments);
}

SyscallResult sys_setfsuid(const SyscallArguments& arguments) {
  return set_file_system_id(user_ids(), arguments.get<std::uint32_t>(0));
}

SyscallResult sys_setfsgid(const SyscallArguments& arguments) {
  return set_file_system_id(group_ids(), arguments.get<std::uint32_t>(0));
}

SyscallResult sys_getgroups(const SyscallArguments& arguments) {
  const auto size = arguments.get<std::int32_t>(0);
  const Credentials& own = current().credentials;
  if (size < 0) return error(EINVAL);
  if (size == 0) return own.group_count;
  if (static_cast<std::uint32_t>(size) < own.group_count) return error(EINVAL);
  TRY_VOID(copy_out(arguments.get<UserAddress>(1), own.groups, own.group_count * sizeof own.groups[0]));
  return own.group_count;
}

SyscallResult sys_setgroups(const SyscallArguments&) {
  return error(EPERM);
}

SyscallResult sys_capget(const SyscallArguments& arguments) {
  const auto data_address = arguments.get<UserAddress>(1);
  const auto header = TRY(copy_in<__user_cap_header_struct>(arguments.get<UserAddress>(0)));
  const auto words = capability_words(header, arguments.get<UserAddress>(0));
  if (!words) {
    // capget(2): asking for the version alone is no error.
    if (value_of(words.error()) == EINVAL && data_address == 0) return 0;
    return std::unexpected(words.error());
  }
  if (header.pid < 0) return error(EINVAL);
  if (header.pid != 0) {
    const LockGuard guard(tasks_lock());
    if (find_task(header.pid) == nullptr) return error(ESRCH);
  }
  if (data_address != 0) TRY_VOID(zero_out(data_address, *words * sizeof(__user_cap_data_struct)));
  return 0;
}

SyscallResult sys_capset(const SyscallArguments& arguments) {
  const auto header = TRY(copy_in<__user_cap_header_struct>(arguments.get<UserAddress>(0)));
  const std::size_t words = TRY(capability_words(header, arguments.get<UserAddress>(0)));
  if (header.pid != 0 && header.pid != current().tid) return error(EPERM);
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  TRY_VOID(copy_in(data, arguments.get<UserAddress>(1), words * sizeof data[0]));
  for (const auto& word : data)
    if ((word.effective | word.permitted | word.inheritable) != 0) return error(EPERM);
  return 0;
}

}  // namespace belljar::kernel
