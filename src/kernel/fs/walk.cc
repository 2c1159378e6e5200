// Path walks (path_resolution(7)).
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

#include "kernel/fs/dentry_cache.h"
#include "kernel/fs/tree.h"

namespace belljar::kernel {
namespace {

constexpr int kLinksMax = 40;
constexpr std::uint64_t kScoped = RESOLVE_BENEATH | RESOLVE_IN_ROOT;

enum class Goal : bool { dentry, last_name };

// One walk. The tree lock is held all along but for questions to folders and links whose answers come from elsewhere.
// at_ is a bare pointer: cached dentries stay while the lock is held, what is not cached is kept by held_.
class Walker {
 public:
  Walker(const Places& places, const Ref<Dentry>& start, std::string_view path, const Credentials& who, const Walk& how,
         Goal goal)
      : root_((how.resolve & kScoped) != 0 ? start.get() : places.root.get()),
        at_(start ? start.get() : places.working_folder.get()),
        text_(path),
        who_(who),
        how_(how),
        goal_(goal) {
    if ((how.resolve & kScoped) != 0 && root_ == nullptr) root_ = at_;
  }
  ~Walker() {
    while (depth_ > 0) pop();
    for (int i = 0; i < copy_count_; ++i) heap_free(copies_[i], kPathMax);
  }
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  SysResult<void> run();

  Dentry* at() const { return at_; }
  Ref<Dentry> take_last() { return std::move(last_); }
  LastName::Kind kind() const { return kind_; }
  bool has_slash() const { return has_slash_; }

 private:
  SysResult<void> begin_text();
  SysResult<bool> step();
  SysResult<bool> enter(std::string_view name, bool is_last);
  SysResult<void> go_up();
  SysResult<void> follow(Dentry& link);
  SysResult<void> follow_magic(Dentry& link);
  SysResult<std::string_view> target_of(Dentry& link);
  SysResult<Dentry*> child(std::string_view name);
  SysResult<void> check_search() const {
    const Inode& inode = *at_->inode;
    if (!inode.is_folder()) return error(ENOTDIR);
    if ((inode.mode & 0111) == 0111) [[likely]]
      return {};
    return check_access(inode, X_OK, who_);
  }
  // A slash at the end asks for a folder: links are followed then, but not to make a file of that name (open(2)).
  bool follows_last() const {
    if (has_slash_) return goal_ == Goal::dentry;
    return how_.follow_last == FollowLast::yes;
  }

  Dentry* root_;
  Dentry* at_;
  std::string_view text_;
  const Credentials& who_;
  const Walk& how_;
  Goal goal_;
  LastName::Kind kind_ = LastName::Kind::root;
  bool has_slash_ = false;
  Ref<Dentry> held_;
  Ref<Dentry> last_;

  // What comes after the links that are being followed, and the links, whose text it is.
  struct Rest {
    std::string_view text;
    Ref<Inode> link;
  };
  void pop() {
    Rest& rest = *rest_at(--depth_);
    text_ = rest.text;
    link_ = std::move(rest.link);
    rest.~Rest();
  }
  Rest* rest_at(int index) { return reinterpret_cast<Rest*>(rests_) + index; }

  int depth_ = 0;
  int links_ = 0;
  int copy_count_ = 0;
  Ref<Inode> link_;  // whose text is text_
  // Room for Rests, which are made as links come: most walks have none.
  alignas(Rest) unsigned char rests_[kLinksMax * sizeof(Rest)];
  char* copies_[kLinksMax];
};

SysResult<Dentry*> Walker::child(std::string_view name) {
  const std::uint32_t hash = hash_of(*at_, name);
  if (Dentry* const cached = tree_state().cache.find(*at_, name, hash)) [[likely]]
    return cached;
  Ref<Dentry> found = TRY(find_child(*at_, name));
  Dentry* const entry = found.get();
  if (!entry->is_cached) held_ = std::move(found);
  return entry;
}

SysResult<void> Walker::go_up() {
  if (at_ == root_) {
    return (how_.resolve & RESOLVE_BENEATH) != 0 ? SysResult<void>(error(EXDEV)) : SysResult<void>();
  }
  while (!at_->parent && at_->covers != nullptr && at_ != root_) {
    if ((how_.resolve & RESOLVE_NO_XDEV) != 0) return error(EXDEV);
    at_ = at_->covers;
  }
  if (at_ != root_ && at_->parent) at_ = at_->parent.get();
  while (at_->mounted != nullptr) at_ = at_->mounted;
  return {};
}

SysResult<void> Walker::begin_text() {
  if (text_.empty()) return error(ENOENT);
  if (text_.front() != '/') return {};
  if ((how_.resolve & RESOLVE_BENEATH) != 0) return error(EXDEV);
  // Of a link; an absolute path of the call itself begins at the root wherever the caller stands.
  const bool is_jump = links_ > 0 && at_->inode->device != root_->inode->device;
  if (is_jump && (how_.resolve & RESOLVE_NO_XDEV) != 0) return error(EXDEV);
  at_ = root_;
  kind_ = LastName::Kind::root;
  while (!text_.empty() && text_.front() == '/') text_.remove_prefix(1);
  return {};
}

SysResult<std::string_view> Walker::target_of(Dentry& link) {
  Inode& inode = *link.inode;
  std::string_view text = TRY(inode.target());
  if (!text.empty()) return text;
  char* const copy = static_cast<char*>(heap_allocate(kPathMax));
  if (copy == nullptr) return error(ENOMEM);
  copies_[copy_count_++] = copy;
  const Ref<Dentry> kept = Ref<Dentry>::of(&link);
  const Ref<Dentry> kept_at = Ref<Dentry>::of(at_);
  tree_lock().unlock();
  const auto size = inode.read_link(copy, kPathMax);
  tree_lock().lock();
  if (!size) return std::unexpected(size.error());
  if (!at_->is_cached) held_ = kept_at;
  return std::string_view(copy, *size);
}

SysResult<void> Walker::follow_magic(Dentry& link) {
  if ((how_.resolve & RESOLVE_NO_MAGICLINKS) != 0) return error(ELOOP);
  if ((how_.resolve & kScoped) != 0) return error(EXDEV);
  const Ref<Dentry> kept = Ref<Dentry>::of(&link);
  tree_lock().unlock();
  auto place = link.inode->follow_magic();
  tree_lock().lock();
  held_ = TRY(std::move(place));
  if (!held_) return error(ENOENT);
  at_ = held_.get();
  if (!at_->inode) return error(ENOENT);
  return {};
}

SysResult<void> Walker::follow(Dentry& link) {
  if ((how_.resolve & RESOLVE_NO_SYMLINKS) != 0) return error(ELOOP);
  if (++links_ > kLinksMax) return error(ELOOP);
  if (link.inode->is_magic()) return follow_magic(link);
  Ref<Inode> inode = link.inode;
  const std::string_view target = TRY(target_of(link));
  if (!text_.empty()) new (rest_at(depth_++)) Rest{text_, std::move(link_)};
  text_ = target;
  link_ = std::move(inode);
  return begin_text();
}

SysResult<bool> Walker::enter(std::string_view name, bool is_last) {
  if (name.size() > kNameMax) return error(ENAMETOOLONG);
  kind_ = LastName::Kind::name;
  Dentry* entry = TRY(child(name));
  const bool is_goal = is_last && goal_ == Goal::last_name;
  if (is_goal) {
    const bool is_link = entry->inode && entry->inode->is_link();
    if (!is_link || !follows_last()) {
      last_ = Ref<Dentry>::of(entry);
      return true;
    }
  }
  while (entry->mounted != nullptr) {
    if ((how_.resolve & RESOLVE_NO_XDEV) != 0) return error(EXDEV);
    entry = entry->mounted;
  }
  if (!entry->inode) return error(ENOENT);
  if (!entry->inode->is_link() || (is_last && !follows_last())) [[likely]] {
    at_ = entry;
    return is_last;
  }
  const bool was_magic = entry->inode->is_magic();
  TRY_VOID(follow(*entry));
  if (!was_magic || !is_last) return false;
  if (is_goal) last_ = Ref<Dentry>::of(at_);
  return true;
}

// One name of the path; true at its end.
SysResult<bool> Walker::step() {
  if (text_.empty()) {
    if (depth_ == 0) return true;
    pop();
  }
  TRY_VOID(check_search());
  std::size_t size = 0;
  while (size < text_.size() && text_[size] != '/') ++size;
  const std::string_view name(text_.data(), size);
  text_.remove_prefix(size);
  const bool slash_after = !text_.empty();
  while (!text_.empty() && text_.front() == '/') text_.remove_prefix(1);
  const bool is_last = text_.empty() && depth_ == 0;
  if (is_last && slash_after) has_slash_ = true;
  if (name == ".") {
    kind_ = LastName::Kind::dot;
    return is_last;
  }
  if (name == "..") {
    kind_ = LastName::Kind::dot_dot;
    TRY_VOID(go_up());
    return is_last;
  }
  return enter(name, is_last);
}

SysResult<void> Walker::run() {
  TRY_VOID(begin_text());
  while (!TRY(step())) continue;
  if (has_slash_ && goal_ == Goal::dentry && !at_->inode->is_folder()) return error(ENOTDIR);
  return {};
}

}  // namespace

SysResult<Ref<Dentry>> walk(const Places& places, const Ref<Dentry>& start, std::string_view path,
                            const Credentials& who, const Walk& how) {
  Walker walker(places, start, path, who, how, Goal::dentry);
  TRY_VOID(walker.run());
  return Ref<Dentry>::of(walker.at());
}

SysResult<LastName> walk_to_last(const Places& places, const Ref<Dentry>& start, std::string_view path,
                                 const Credentials& who, const Walk& how) {
  Walker walker(places, start, path, who, how, Goal::last_name);
  TRY_VOID(walker.run());
  LastName result;
  result.folder = Ref<Dentry>::of(walker.at());
  result.dentry = walker.take_last();
  result.kind = walker.kind();
  result.has_slash = walker.has_slash();
  if (result.kind == LastName::Kind::name && result.folder.get() == result.dentry.get()) {
    result.folder = result.dentry->parent;  // through a magic link
  }
  return result;
}

}  // namespace belljar::kernel
