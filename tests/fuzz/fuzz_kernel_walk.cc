// Path walks of the user-space kernel beside a resolver that works on texts alone: in trees of folders, files, links
// and mounts that the input makes, both come to the same place or to the same error.
#include <fcntl.h>
#include <fuzzer/FuzzedDataProvider.h>
#include <linux/openat2.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "kernel/base/hosted.h"
#include "kernel/fs/mount_tree.h"
#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kUser = 1000;
constexpr int kLinksMax = 40;
constexpr std::uint64_t kScoped = RESOLVE_BENEATH | RESOLVE_IN_ROOT;

// What is where, by its path without links: "" is the root, "/a/b".
struct Node {
  std::uint32_t mode = S_IFDIR | 0755;
  std::uint32_t uid = 0;
  std::string target;
  int mount = 0;  // which file system it is of
  bool is_mounted = false;
};
using Model = std::map<std::string, Node>;

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

// The part of the tree that the host shows. What it is asked must be a plain path.
class ModelHost final : public HostTree {
 public:
  explicit ModelHost(const Model& model) : model_(model) {}
  SysResult<Facts> stat(std::string_view path) override { return facts_of(TRY(find(path))->second); }
  SysResult<void> list(std::string_view path, Visit visit, void* context) override {
    const auto folder = TRY(find(path));
    for (const auto& [name, node] : model_) {
      if (name.empty() || parent_of(name) != folder->first) continue;
      visit(context, std::string_view(name).substr(folder->first.size() + 1), facts_of(node));
    }
    return {};
  }
  SysResult<std::size_t> read_link(std::string_view path, char* to, std::size_t size) override {
    return TRY(find(path))->second.target.copy(to, size);
  }
  SysResult<Content> fetch(std::string_view, Wanted) override { return error(EIO); }
  SysResult<std::uint64_t> read(std::string_view, std::uint64_t, Buffers&) override { return error(EIO); }
  SysResult<std::size_t> read_live(std::string_view, std::uint64_t, char*, std::size_t) override { return error(EIO); }

 private:
  SysResult<Model::const_iterator> find(std::string_view path) const {
    const std::string text = path.empty() ? "" : "/" + std::string(path);
    if (text.find("//") != text.npos || (text + "/").find("/./") != text.npos || (text + "/").find("/../") != text.npos)
      std::abort();
    for (std::string folder = text; !folder.empty();) {
      folder = parent_of(folder);
      if (!model_.contains(folder) || !S_ISDIR(model_.at(folder).mode)) std::abort();
    }
    const auto found = model_.find(text);
    if (found == model_.end()) return error(ENOENT);
    return found;
  }
  static Facts facts_of(const Node& node) {
    Facts facts;
    facts.mode = node.mode;
    facts.uid = facts.gid = node.uid;
    facts.size = node.target.size();
    return facts;
  }

  Model model_;
};

struct Found {
  int error = 0;
  std::string place;  // of walk_to_last(): the folder
  std::string name;
  LastName::Kind kind = LastName::Kind::root;
  bool has_slash = false;
  bool operator==(const Found&) const = default;
};

// path_resolution(7) with openat2(2)'s rules. A link's target goes before the rest of the text.
class Resolver {
 public:
  Resolver(const Model& model, std::string start, const Walk& how, bool is_to_last)
      : model_(model), at_(std::move(start)), how_(how), is_to_last_(is_to_last) {
    if ((how.resolve & kScoped) != 0) root_ = at_;
  }

  Found resolve(std::string text) {
    text_ = std::move(text);
    found_.error = begin();
    while (found_.error == 0 && !is_done_ && !text_.empty()) found_.error = step();
    if (found_.error != 0) return {found_.error, "", "", {}, false};
    if (!is_to_last_ && found_.has_slash && !S_ISDIR(model_.at(at_).mode)) return {ENOTDIR, "", "", {}, false};
    found_.place = at_;
    if (!is_to_last_) return {0, at_, "", {}, false};
    return found_;
  }

 private:
  bool has(std::uint64_t flag) const { return (how_.resolve & flag) != 0; }
  const Node& here() const { return model_.at(at_); }

  int begin() {
    if (text_.empty()) return ENOENT;
    if (text_[0] != '/') return 0;
    if (has(RESOLVE_BENEATH)) return EXDEV;
    if (has(RESOLVE_NO_XDEV) && links_ > 0 && here().mount != model_.at(root_).mount) return EXDEV;
    at_ = root_;
    found_.kind = LastName::Kind::root;
    text_.erase(0, text_.find_first_not_of('/'));
    return 0;
  }

  int step() {
    if (!S_ISDIR(here().mode)) return ENOTDIR;
    if ((here().mode & (here().uid == kUser ? 0100 : 0001)) == 0) return EACCES;
    const std::string name = text_.substr(0, text_.find('/'));
    const std::string rest = text_.substr(name.size());
    const bool is_last = rest.find_first_not_of('/') == rest.npos;
    if (is_last && !rest.empty()) found_.has_slash = true;
    text_ = is_last ? "" : rest.substr(rest.find_first_not_of('/'));
    if (name == ".") return take_kind(LastName::Kind::dot);
    if (name == "..") return take_kind(LastName::Kind::dot_dot), go_up();
    return enter(name, rest, is_last);
  }

  int take_kind(LastName::Kind kind) {
    found_.kind = kind;
    return 0;
  }

  int go_up() {
    if (at_ == root_) return has(RESOLVE_BENEATH) ? EXDEV : 0;
    if (here().is_mounted && has(RESOLVE_NO_XDEV)) return EXDEV;
    at_ = parent_of(at_);
    return 0;
  }

  int enter(const std::string& name, const std::string& rest, bool is_last) {
    if (name.size() > kNameMax) return ENAMETOOLONG;
    found_.kind = LastName::Kind::name;
    const auto child = model_.find(at_ + "/" + name);
    const bool is_link = child != model_.end() && S_ISLNK(child->second.mode);
    const bool follows = found_.has_slash ? !is_to_last_ : how_.follow_last == FollowLast::yes;
    if (is_last && is_to_last_ && !(is_link && follows)) {
      found_.name = name;
      is_done_ = true;
      return 0;
    }
    if (child == model_.end()) return ENOENT;
    if (child->second.is_mounted && has(RESOLVE_NO_XDEV)) return EXDEV;
    if (!is_link || (is_last && !follows)) {
      at_ = child->first;
      return 0;
    }
    if (has(RESOLVE_NO_SYMLINKS) || ++links_ > kLinksMax) return ELOOP;
    text_ = child->second.target + rest;
    return begin();
  }

  const Model& model_;
  std::string root_, at_, text_;
  const Walk& how_;
  bool is_to_last_;
  bool is_done_ = false;
  int links_ = 0;
  Found found_;
};

class Comparison {
 public:
  explicit Comparison(FuzzedDataProvider& input) : input_(input) {
    model_[""] = {};
    model_["/tmp"] = {};
    for (int nodes = input_.ConsumeIntegralInRange(0, 12); nodes > 0; --nodes) add_to_host();
    boot();
  }
  ~Comparison() {
    kernel_.task().files = nullptr;
    kernel_.task().fs = nullptr;
  }

  void run() {
    while (input_.remaining_bytes() > 0) {
      switch (input_.ConsumeIntegralInRange(0, 9)) {
        case 0:
          make_folder();
          break;
        case 1:
          make_link();
          break;
        case 2:
          make_file();
          break;
        case 3:
          remove();
          break;
        case 4:
          change_mode();
          break;
        case 5:
          mount();
          break;
        default:
          compare_walks();
          break;
      }
    }
  }

 private:
  std::string name() {
    static const std::string kNames[] = {"a", "b", "c", "l", "tmp", std::string(255, 'n')};
    return input_.PickValueInArray(kNames);
  }
  // Of those that there are.
  std::string any_path() {
    auto at = model_.begin();
    std::advance(at, input_.ConsumeIntegralInRange<std::size_t>(0, model_.size() - 1));
    return at->first;
  }
  std::string text() {
    static const std::string kWords[] = {"/",  "//", "a", "b",   "c",  "l",  "tmp", ".",
                                         "..", "x",  "/", "../", "a/", "/b", "",    std::string(256, 'n')};
    std::string text;
    for (int words = input_.ConsumeIntegralInRange(0, 10); words > 0; --words) text += input_.PickValueInArray(kWords);
    return text;
  }
  std::uint32_t mode() { return input_.ConsumeBool() ? 0755 : input_.ConsumeIntegralInRange(0U, 0777U); }

  void add_to_host() {
    const std::string folder = any_path();
    if (!S_ISDIR(model_[folder].mode)) return;
    Node node;
    node.mode = input_.PickValueInArray<std::uint32_t>({S_IFDIR, S_IFREG, S_IFLNK}) | mode();
    node.uid = input_.ConsumeBool() ? kUser : 0;
    if (S_ISLNK(node.mode)) node.target = text();
    if (S_ISLNK(node.mode) && node.target.empty()) return;
    model_.try_emplace(folder + "/" + name(), node);
  }

  void boot() {
    model_["/tmp"] = {};
    host_.emplace(model_);
    std::erase_if(model_, [](const auto& entry) { return entry.first.starts_with("/tmp/"); });
    Credentials& who = kernel_.task().credentials;
    who.uid = who.euid = who.suid = who.fsuid = kUser;
    who.gid = who.egid = who.sgid = who.fsgid = kUser;
    space_ = make_ref<TmpSpace>(1UL << 20, 1000UL);
    MountPlan plan;
    plan.root = &*host_;
    plan.space = space_;
    plan.uid = plan.gid = kUser;
    auto places = mount_tree(plan);
    if (!places) std::abort();
    kernel_.task().fs->places = *places;
    model_["/tmp"] = {S_IFDIR | 01777, kUser, "", ++mounts_, true};
    // An empty /dev has no /dev/shm; one of the host's has.
    if (model_.contains("/dev")) std::abort();
  }

  template <typename... Values>
  static bool succeeds(SyscallFunction function, const std::string& path, Values... values) {
    const SyscallArguments arguments{
        {reinterpret_cast<std::uint64_t>(path.c_str()), static_cast<std::uint64_t>(values)...}};
    return function(arguments).has_value();
  }
  void add(const std::string& path, std::uint32_t mode, const std::string& target) {
    model_[path] = {mode, kUser, target, model_.at(parent_of(path)).mount, false};
  }
  void make_folder() {
    const std::string path = any_path() + "/" + name();
    const std::uint32_t wanted = mode();
    if (is_plain(path) && succeeds(sys_mkdir, path, wanted)) add(path, S_IFDIR | (wanted & ~022U), "");
  }
  void make_link() {
    const std::string path = any_path() + "/" + name();
    const std::string target = text();
    const SyscallArguments arguments{
        {reinterpret_cast<std::uint64_t>(target.c_str()), reinterpret_cast<std::uint64_t>(path.c_str())}};
    if (is_plain(path) && sys_symlink(arguments)) add(path, S_IFLNK | 0777, target);
  }
  void make_file() {
    const std::string path = any_path() + "/" + name();
    if (is_plain(path) && succeeds(sys_mknod, path, S_IFREG | 0644, 0)) add(path, S_IFREG | 0644, "");
  }
  void remove() {
    const std::string path = any_path();
    if (is_plain(path) && (succeeds(sys_unlink, path) || succeeds(sys_rmdir, path))) model_.erase(path);
  }
  void change_mode() {
    const std::string path = any_path();
    const std::uint32_t wanted = mode();
    if (!is_plain(path) || S_ISLNK(model_.at(path).mode) || !succeeds(sys_chmod, path, wanted)) return;
    model_[path].mode = (model_[path].mode & S_IFMT) | wanted;
  }
  void mount() {
    const std::string path = any_path();
    if (path.empty() || !S_ISDIR(model_.at(path).mode) || mounts_ > 20) return;
    LockGuard guard(tree_lock());
    const auto place = walk(kernel_.task().fs->places, nullptr, path, kernel_.task().credentials, {});
    if (!place) return;
    if (!mount_over(*place, make_root_dentry(*make_tmpfs(space_, 0777, kUser, kUser)))) std::abort();
    std::erase_if(model_, [&](const auto& entry) { return entry.first.starts_with(path + "/"); });
    model_[path] = {S_IFDIR | 0777, kUser, "", ++mounts_, true};
  }
  // Below no link, so that the model's name for it is the kernel's.
  bool is_plain(const std::string& path) const {
    return path.size() < kPathMax && !path.empty() && S_ISDIR(model_.at(parent_of(path)).mode);
  }

  void compare_walks() {
    const std::string start_path = any_path();
    const std::string path = text();
    Walk how;
    how.follow_last = input_.ConsumeBool() ? FollowLast::yes : FollowLast::no;
    how.resolve = input_.PickValueInArray<std::uint64_t>({0, 0, RESOLVE_BENEATH, RESOLVE_IN_ROOT, RESOLVE_NO_SYMLINKS,
                                                          RESOLVE_NO_XDEV, RESOLVE_BENEATH | RESOLVE_NO_XDEV,
                                                          RESOLVE_IN_ROOT | RESOLVE_NO_XDEV});
    const bool is_to_last = input_.ConsumeBool();
    LockGuard guard(tree_lock());
    const Places& places = kernel_.task().fs->places;
    Walk to_start;
    to_start.follow_last = FollowLast::no;
    const auto start =
        walk(places, nullptr, start_path.empty() ? "/" : start_path, kernel_.task().credentials, to_start);
    if (!start) return;
    const Found expected = Resolver(model_, start_path, how, is_to_last).resolve(path);
    const Found seen = is_to_last ? walk_last(*start, path, how) : walk_all(*start, path, how);
    if (seen == expected) return;
    std::fprintf(stderr, "from '%s', '%s', resolve %llx, follow %d, to last %d:\n", start_path.c_str(), path.c_str(),
                 static_cast<unsigned long long>(how.resolve), static_cast<int>(how.follow_last), is_to_last);
    for (const Found& one : {expected, seen}) {
      std::fprintf(stderr, "  error %d, place '%s', name '%s', kind %d, slash %d\n", one.error, one.place.c_str(),
                   one.name.c_str(), static_cast<int>(one.kind), one.has_slash);
    }
    std::abort();
  }

  std::string path_text(Dentry& dentry) const {
    static char buffer[65536];
    const auto size = path_of(dentry, *kernel_.task().fs->places.root, buffer, sizeof buffer);
    if (!size) std::abort();
    return *size == 1 ? "" : std::string(buffer, *size);
  }
  Found walk_all(const Ref<Dentry>& start, const std::string& path, const Walk& how) const {
    const auto place = walk(kernel_.task().fs->places, start, path, kernel_.task().credentials, how);
    if (!place) return {value_of(place.error()), "", "", {}, false};
    return {0, path_text(**place), "", {}, false};
  }
  Found walk_last(const Ref<Dentry>& start, const std::string& path, const Walk& how) const {
    const auto last = walk_to_last(kernel_.task().fs->places, start, path, kernel_.task().credentials, how);
    if (!last) return {value_of(last.error()), "", "", {}, false};
    Found found{0, path_text(*last->folder), "", last->kind, last->has_slash};
    if (last->kind == LastName::Kind::name) found.name = std::string(last->dentry->name());
    return found;
  }

  FuzzedDataProvider& input_;
  Model model_;
  mutable HostedKernel kernel_;
  std::optional<ModelHost> host_;
  Ref<TmpSpace> space_;
  int mounts_ = 0;
};

}  // namespace
}  // namespace belljar::kernel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  belljar::kernel::Comparison(input).run();
  return 0;
}
