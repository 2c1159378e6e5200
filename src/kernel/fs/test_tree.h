// For tests: a host tree made of a table, a kernel whose "/" it is, and calls by name.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/arena/layout.h"
#include "kernel/base/hosted.h"
#include "kernel/fs/dev.h"
#include "kernel/fs/mount_tree.h"
#include "kernel/fs/proc.h"
#include "kernel/fs/sys.h"
#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {

class TestHostTree final : public HostTree {
 public:
  struct Node {
    std::uint32_t mode = 0;
    std::string text;  // contents, or a link's target
    std::uint32_t uid = 0;
  };

  TestHostTree() { nodes_[""] = {S_IFDIR | 0755, "", 0}; }
  void add(const std::string& path, std::uint32_t mode, const std::string& text = "", std::uint32_t uid = 0) {
    nodes_[path] = {mode, text, uid};
  }

  SysResult<Facts> stat(std::string_view path) override {
    ++stats;
    const auto found = nodes_.find(std::string(path));
    if (found == nodes_.end()) return error(ENOENT);
    return facts_of(*found);
  }
  SysResult<void> list(std::string_view path, Visit visit, void* context) override {
    ++lists;
    const std::string prefix = path.empty() ? "" : std::string(path) + "/";
    for (const auto& node : nodes_) {
      if (node.first.empty() || !node.first.starts_with(prefix)) continue;
      const std::string name = node.first.substr(prefix.size());
      if (name.find('/') == std::string::npos) visit(context, name, facts_of(node));
    }
    return {};
  }
  SysResult<std::size_t> read_link(std::string_view path, char* to, std::size_t size) override {
    ++links;
    const std::string& text = nodes_.at(std::string(path)).text;
    const std::size_t count = std::min(size, text.size());
    std::memcpy(to, text.data(), count);
    return count;
  }
  SysResult<Content> fetch(std::string_view path, Wanted wanted) override {
    ++fetches;
    const std::string& text = nodes_.at(std::string(path)).text;
    if (in_parts && wanted == Wanted::any) return Content{.size = text.size(), .is_in_parts = true};
    const std::uint64_t offset = next_offset_;
    std::memcpy(reinterpret_cast<char*>(kContentBase + offset), text.data(), text.size());
    next_offset_ += page_up(text.size());
    return Content{offset, text.size(), 7};
  }
  SysResult<std::uint64_t> read(std::string_view path, std::uint64_t offset, Buffers& to) override {
    ++reads;
    const std::string& text = nodes_.at(std::string(path)).text;
    if (offset >= text.size()) return 0;
    const std::uint64_t count = std::min<std::uint64_t>({kPart, to.left(), text.size() - offset});
    const SysResult<void> put = to.put(text.data() + offset, count);
    if (!put) return std::unexpected(put.error());
    return count;
  }
  SysResult<std::size_t> read_live(std::string_view, std::uint64_t, char*, std::size_t) override {
    return error(ENOSYS);
  }

  static constexpr std::uint64_t kPart = 1000;
  bool in_parts = false;  // what is not wanted whole
  int stats = 0, lists = 0, links = 0, fetches = 0, reads = 0;

 private:
  Facts facts_of(const std::pair<const std::string, Node>& node) const {
    Facts facts;
    facts.number = 1000 + static_cast<std::uint64_t>(std::distance(nodes_.begin(), nodes_.find(node.first)));
    facts.size = node.second.text.size();
    facts.mode = node.second.mode;
    facts.uid = facts.gid = node.second.uid;
    facts.modify_time.seconds = 1'600'000'000;
    return facts;
  }

  std::map<std::string, Node> nodes_;
  std::uint64_t next_offset_ = 0;
};

// A kernel of an unprivileged user (1000) in a tree with /tmp and /dev/shm.
class FileSystemTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSpaceBytes = 4U << 20;
  static constexpr std::uint64_t kSpaceInodes = 1000;

  FileSystemTest() {
    host.add("dev", S_IFDIR | 0755);
    host.add("proc", S_IFDIR | 0755);
    host.add("sys", S_IFDIR | 0755);
    host.add("tmp", S_IFDIR | 0755);
    host.add("etc", S_IFDIR | 0755);
    host.add("etc/passwd", S_IFREG | 0644, "root:x:0:0:root:/root:/bin/sh\n");
    host.add("etc/shadow", S_IFREG | 0600, "secret");
    host.add("usr", S_IFDIR | 0755);
    host.add("usr/bin", S_IFDIR | 0755);
    host.add("usr/bin/true", S_IFREG | 0755, std::string(5000, 't'));
    host.add("bin", S_IFLNK | 0777, "usr/bin");
    host.add("absolute", S_IFLNK | 0777, "/usr/bin");
    host.add("loop", S_IFLNK | 0777, "loop");
    space = make_ref<TmpSpace>(kSpaceBytes, kSpaceInodes);
    Credentials& who = kernel.task().credentials;
    who.uid = who.euid = who.suid = who.fsuid = 1000;
    who.gid = who.egid = who.sgid = who.fsgid = 1000;
    MountPlan plan;
    plan.root = &host;
    plan.space = space;
    plan.uid = plan.gid = 1000;
    plan.proc = *make_proc_file_system(&host);
    plan.dev = *make_dev_file_system();
    plan.sys = *make_sys_file_system();
    auto places = mount_tree(plan);
    EXPECT_TRUE(places.has_value());
    kernel.task().fs->places = *places;
  }
  ~FileSystemTest() override {
    kernel.task().files = nullptr;
    kernel.task().fs = nullptr;
    space = nullptr;
  }

  // The result, or -errno.
  template <typename... Values>
  static long call(SyscallFunction function, Values... values) {
    const SyscallArguments arguments{{as_word(values)...}};
    const SyscallResult result = function(arguments);
    return result ? static_cast<long>(*result) : -value_of(result.error());
  }
  static std::uint64_t as_word(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }
  template <typename T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  static std::uint64_t as_word(T value) {
    return static_cast<std::uint64_t>(value);
  }

  static long open(const char* path, int flags, int mode = 0644) { return call(sys_open, path, flags, mode); }
  static std::string read_all(long fd) {
    std::string text;
    char block[1000];
    while (true) {
      const long count = call(sys_read, fd, block, sizeof block);
      if (count <= 0) return count == 0 ? text : "error " + std::to_string(count);
      text.append(block, static_cast<std::size_t>(count));
    }
  }
  static std::string read_path(const char* path) {
    const long fd = open(path, 0);
    if (fd < 0) return "error " + std::to_string(fd);
    std::string text = read_all(fd);
    call(sys_close, fd);
    return text;
  }
  static long write_path(const char* path, std::string_view text) {
    const long fd = open(path, 01101);
    if (fd < 0) return fd;
    const long count = call(sys_write, fd, text.data(), text.size());
    call(sys_close, fd);
    return count;
  }
  // The names of a folder, without "." and "..".
  static std::vector<std::string> names_in(const std::string& path, std::size_t block_size = 4096) {
    std::vector<std::string> names;
    const long fd = open(path.c_str(), O_DIRECTORY);
    std::vector<char> block(block_size);
    for (long size = 0; (size = call(sys_getdents64, fd, block.data(), block.size())) > 0;) {
      for (long at = 0; at < size; at += *reinterpret_cast<std::uint16_t*>(block.data() + at + 16)) {
        const std::string name = block.data() + at + 19;
        if (name != "." && name != "..") names.push_back(name);
      }
    }
    call(sys_close, fd);
    return names;
  }
  static void remove_below(const std::string& folder) {
    for (const std::string& name : names_in(folder)) {
      const std::string path = folder + "/" + name;
      if (call(sys_unlink, path.c_str()) == 0) continue;
      remove_below(path);
      EXPECT_EQ(call(sys_rmdir, path.c_str()), 0) << path;
    }
  }
  static long size_of(const char* path) {
    struct stat status{};
    const long result = call(sys_stat, path, &status);
    return result < 0 ? result : status.st_size;
  }

  TestHostTree host;
  HostedKernel kernel;
  Ref<TmpSpace> space;
};

}  // namespace belljar::kernel
