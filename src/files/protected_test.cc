#include "files/protected.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <set>

#include "base/fd.h"

namespace belljar {
namespace {

bool is_protected(std::string_view parent, std::string_view name, FileKind kind = FileKind::regular) {
  return !why_protected(name_key(parent), name_key(name), kind).empty();
}

TEST(Protected, EveryRowProtectsItself) {
  std::set<std::string> paths;
  for (const ProtectedRow& row : protected_rows()) {
    EXPECT_TRUE(paths.insert(std::string(row.path)).second) << row.path;
    EXPECT_FALSE(row.why.empty());
    const std::size_t slash = row.path.find('/');
    const std::string_view parent = slash == std::string_view::npos ? "any" : row.path.substr(0, slash);
    std::string name(slash == std::string_view::npos ? row.path : row.path.substr(slash + 1));
    if (name.starts_with('*')) name.replace(0, 1, "x");
    EXPECT_TRUE(is_protected(parent, name)) << row.path;
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    EXPECT_TRUE(is_protected(parent, name)) << row.path;
    EXPECT_FALSE(is_protected(parent, std::string("x").append(name).append("x"))) << row.path;
    EXPECT_EQ(is_protected("any", name), slash == std::string_view::npos) << row.path;
    EXPECT_EQ(is_protected(parent, name, FileKind::folder), !row.only_files) << row.path;
  }
}

TEST(Protected, SeesThroughWhatFileSystemsIgnore) {
  for (const char* parent : {".git", ".GIT", ".Git", ".g\u200cit", "\ufeff.git", ".git.", ".git ", ".git. .", "git~1",
                             "GIT~1", ".git::$INDEX_ALLOCATION", ".git :$I30:$INDEX_ALLOCATION"}) {
    EXPECT_TRUE(is_protected(parent, "hooks")) << parent;
  }
  EXPECT_TRUE(is_protected("", ".v\u017fcode"));       // LONG S is an s without its case
  EXPECT_TRUE(is_protected("", "lefthoo\u212A.yml"));  // KELVIN SIGN is a K
  EXPECT_TRUE(is_protected("", ".envrc\u00AD"));
  EXPECT_TRUE(is_protected("", ".envrc::$DATA"));
}

TEST(Protected, LeavesOrdinaryNamesAlone) {
  for (const char* name : {"HEAD", "index", "objects", "refs", "logs", "COMMIT_EDITMSG", "packed-refs"}) {
    EXPECT_FALSE(is_protected(".git", name)) << name;
  }
  EXPECT_FALSE(is_protected("src", ".git", FileKind::folder));
  for (const char* name :
       {".gitignore", ".gitattributes", "Makefile", "package.json", "envrc", ".env", "config", "hooks", "git", "...",
        "::", ".envrc:1", ".git:x", "", ".", " ", "\xff", "a.code-workspace.txt"}) {
    EXPECT_FALSE(is_protected("src", name)) << name;
  }
}

TEST(Protected, LetsRefsAndTheirLogsThrough) {
  const auto is_protected_at = [](std::initializer_list<std::string_view> folders, std::string_view name) {
    std::string parent = "any";
    for (const std::string_view folder : folders) parent = folder_key(parent, folder);
    return !why_protected(parent, name_key(name), FileKind::regular).empty();
  };
  EXPECT_FALSE(is_protected_at({".git", "logs"}, "HEAD"));
  EXPECT_FALSE(is_protected_at({".git", "logs", "refs", "remotes", "origin"}, "HEAD"));
  EXPECT_FALSE(is_protected_at({".GIT", "Refs", "remotes", "origin"}, "HEAD"));
  EXPECT_FALSE(is_protected_at({".git", "refs", "heads"}, "main"));
  for (const char* name : {"objects", "OBJECTS", "commondir"}) {
    EXPECT_TRUE(is_protected_at({".git", "logs"}, name)) << name;
    EXPECT_TRUE(is_protected_at({".git", "refs", "remotes", "origin"}, name)) << name;
    EXPECT_FALSE(is_protected_at({"logs"}, name)) << name;
  }
  EXPECT_TRUE(is_protected_at({"logs"}, "HEAD"));
  EXPECT_TRUE(is_protected_at({".git", "other"}, "HEAD"));
  EXPECT_TRUE(is_protected_at({".git", "refs", ".git"}, "hooks"));
  EXPECT_TRUE(is_protected_at({".git", "refs", ".x"}, "HEAD"));
}

TEST(Protected, KnowsAGitFolderByWhatIsInIt) {
  char path[] = "/tmp/belljar_git_XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const Fd folder(::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_FALSE(is_git_folder(folder.get()));
  ASSERT_EQ(::mkdirat(folder.get(), "objects", 0755), 0);
  EXPECT_FALSE(is_git_folder(folder.get()));
  ASSERT_EQ(::symlinkat("refs/heads/main", folder.get(), "HEAD"), 0);
  EXPECT_TRUE(is_git_folder(folder.get()));
  ASSERT_EQ(::unlinkat(folder.get(), "objects", AT_REMOVEDIR), 0);
  EXPECT_FALSE(is_git_folder(folder.get()));
  ASSERT_TRUE(open_at(folder.get(), "commondir", O_CREAT | O_WRONLY, 0644));
  EXPECT_TRUE(is_git_folder(folder.get()));
  for (const char* name : {"HEAD", "commondir"}) ::unlinkat(folder.get(), name, 0);
  ::rmdir(path);
}

}  // namespace
}  // namespace belljar
