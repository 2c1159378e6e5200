#include "image/active_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "spec/errors.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A caller's home folder with what the cases put there. It lies in a temporary folder, outside /usr.
class ActiveEnvironmentTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "active_environment.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = fs::canonical(name);
    home_ = root_ / "home";
    fs::create_directories(home_);
    variables_["HOME"] = home_;
    variables_["PATH"] = "/usr/bin:/bin";
  }
  void TearDown() override { fs::remove_all(root_); }

  void program(const fs::path& path) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/sh\n";
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  void file(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void link(const fs::path& path, const fs::path& text) {
    fs::create_directories(path.parent_path());
    fs::create_symlink(text, path);
  }
  // A virtual environment as python3 -m venv makes it.
  void venv(const fs::path& path, const fs::path& base) {
    link(path / "bin/python3", base);
    link(path / "bin/python", "python3");
    file(path / "pyvenv.cfg", "home = " + base.parent_path().string() + "\ninclude-system-site-packages = false\n");
  }
  EnvironmentLookup lookup() {
    return [this](const char* name) -> const char* {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    };
  }
  std::string prefix_found(std::string_view name) {
    const auto found = find_outside_interpreter(name, lookup());
    return found ? found->found_by + " " + found->prefix : "none";
  }
  std::string refusal(const std::string& path) {
    const auto plan = resolve_venv(path, lookup());
    if (plan) return "";
    EXPECT_EQ(plan.error().code, ErrorCode::bad_mount);
    return plan.error().message;
  }

  fs::path root_, home_;
  std::map<std::string, std::string> variables_;
};

TEST_F(ActiveEnvironmentTest, TheSystemsOwnInterpretersAreInside) {
  EXPECT_EQ(prefix_found("sh"), "none");
  EXPECT_EQ(prefix_found("no-such-program"), "none");
  variables_.clear();
  EXPECT_EQ(prefix_found("sh"), "none");
}

TEST_F(ActiveEnvironmentTest, NamesTheVirtualEnvironment) {
  venv(home_ / "proj/.venv", "/usr/bin/env");
  variables_["VIRTUAL_ENV"] = home_ / "proj/.venv/";
  EXPECT_EQ(prefix_found("python3"), "VIRTUAL_ENV " + (home_ / "proj/.venv").string());
  EXPECT_EQ(prefix_found("sh"), "none");
  const auto found = find_outside_interpreter("python3", lookup());
  EXPECT_THAT(outside_interpreter_hint(*found), HasSubstr("--venv " + (home_ / "proj/.venv").string()));
  variables_["VIRTUAL_ENV"] = home_ / "gone";
  EXPECT_EQ(prefix_found("no-such-program"), "none");
}

TEST_F(ActiveEnvironmentTest, NamesAnEnvironmentThatIsOnlyOnPath) {
  venv(home_ / "proj/.venv", "/usr/bin/env");
  variables_["PATH"] = (home_ / "proj/.venv/bin").string() + ":/usr/bin";
  EXPECT_EQ(prefix_found("python3"), "PATH " + (home_ / "proj/.venv").string());
}

TEST_F(ActiveEnvironmentTest, NamesConda) {
  program(home_ / "miniconda3/bin/python3");
  program(home_ / "miniconda3/bin/node");
  variables_["CONDA_PREFIX"] = home_ / "miniconda3";
  EXPECT_EQ(prefix_found("python3"), "CONDA_PREFIX " + (home_ / "miniconda3").string());
  EXPECT_EQ(prefix_found("node"), "CONDA_PREFIX " + (home_ / "miniconda3").string());
}

TEST_F(ActiveEnvironmentTest, LooksThroughLinksToWhereAProgramIsInstalled) {
  program(home_ / ".local/share/uv/python/cpython-3.12/bin/python3.12");
  link(home_ / ".local/bin/python3", "../share/uv/python/cpython-3.12/bin/python3.12");
  variables_["PATH"] = (home_ / ".local/bin").string();
  EXPECT_EQ(prefix_found("python3"), "PATH " + (home_ / ".local/share/uv/python/cpython-3.12").string());
}

TEST_F(ActiveEnvironmentTest, NamesNothingThatCouldNotBeMounted) {
  program(home_ / "bin/node");  // the prefix would be the home folder
  program(home_ / ".local/bin/perl");
  variables_["PATH"] = (home_ / "bin").string() + ":" + (home_ / ".local/bin").string();
  EXPECT_EQ(prefix_found("node"), "none");
  EXPECT_EQ(prefix_found("perl"), "none");
}

TEST_F(ActiveEnvironmentTest, LooksBehindShims) {
  const fs::path pyenv = home_ / ".pyenv";
  program(pyenv / "shims/python3");
  program(pyenv / "versions/3.12.9/bin/python3");
  program(pyenv / "versions/3.12.10/bin/python3");
  program(pyenv / "versions/3.9.1/bin/python3");
  variables_["PATH"] = (pyenv / "shims").string() + ":/usr/bin";
  const std::string versions = "PATH " + (pyenv / "versions/").string();
  variables_["PYENV_VERSION"] = "3.9.1";
  EXPECT_EQ(prefix_found("python3"), versions + "3.9.1");
  variables_["PYENV_VERSION"] = "3.12";
  EXPECT_EQ(prefix_found("python3"), versions + "3.12.10");
  variables_["PYENV_VERSION"] = "../../..";
  EXPECT_EQ(prefix_found("python3"), "none");
  variables_.erase("PYENV_VERSION");
  file(pyenv / "version", "3.12.9\n");
  EXPECT_EQ(prefix_found("python3"), versions + "3.12.9");
  file(pyenv / "version", "system\n");
  EXPECT_EQ(prefix_found("python3"), "none");
}

TEST_F(ActiveEnvironmentTest, AVersionFileOfTheWorkingFolderComesFirst) {
  const fs::path pyenv = home_ / ".pyenv";
  program(pyenv / "shims/python3");
  program(pyenv / "versions/3.9.1/bin/python3");
  program(pyenv / "versions/3.12.9/bin/python3");
  file(pyenv / "version", "3.12.9\n");
  file(home_ / "proj/.python-version", "3.9.1\n");
  fs::create_directories(home_ / "proj/src");
  variables_["PATH"] = pyenv / "shims";
  const fs::path before = fs::current_path();
  fs::current_path(home_ / "proj/src");
  const std::string found = prefix_found("python3");
  fs::current_path(before);
  EXPECT_EQ(found, "PATH " + (pyenv / "versions/3.9.1").string());
}

TEST_F(ActiveEnvironmentTest, AVenvOfTheSystemsPythonNeedsOnlyItself) {
  const fs::path path = home_ / "proj/.venv";
  venv(path, "/usr/bin/env");
  const auto plan = resolve_venv(path.string() + "/", lookup());
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->folders, ElementsAre(path.string()));
  EXPECT_THAT(plan->links, IsEmpty());
  EXPECT_EQ(plan->path_folder, path / "bin");
  EXPECT_EQ(plan->virtual_env, path);
}

TEST_F(ActiveEnvironmentTest, ARelativePathStartsAtTheWorkingFolder) {
  venv(home_ / "proj/.venv", "/usr/bin/env");
  const fs::path before = fs::current_path();
  fs::current_path(home_ / "proj");
  const auto plain = resolve_venv(".venv", lookup());
  const auto dotted = resolve_venv("./../proj//.venv/", lookup());
  fs::current_path(before);
  ASSERT_TRUE(plain && dotted);
  EXPECT_EQ(plain->virtual_env, home_ / "proj/.venv");
  EXPECT_EQ(dotted->virtual_env, home_ / "proj/.venv");
}

TEST_F(ActiveEnvironmentTest, AVenvBringsItsBaseThroughAChainOfLinks) {
  const fs::path versions = home_ / ".pyenv/versions";
  program(versions / "3.12.9/bin/python3.12");
  link(versions / "3.12.9/bin/python3", "python3.12");
  link(versions / "3.12", "3.12.9");
  link(home_ / "bin/python3", versions / "3.12/bin/python3");
  venv(home_ / "proj/.venv", home_ / "bin/python3");
  const auto plan = resolve_venv((home_ / "proj/.venv").string(), lookup());
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->folders, ElementsAre((versions / "3.12.9").string(), (home_ / "proj/.venv").string()));
  std::map<std::string, std::string> links;
  for (const VenvLink& each : plan->links) links[each.path] = each.text;
  EXPECT_EQ(links, (std::map<std::string, std::string>{{versions / "3.12", "3.12.9"},
                                                       {home_ / "bin/python3", versions / "3.12/bin/python3"}}));
}

TEST_F(ActiveEnvironmentTest, AVenvReachedThroughALinkIsMountedWhereItIs) {
  venv(root_ / "disk/venv", "/usr/bin/env");
  link(home_ / "venv", root_ / "disk/venv");
  const auto plan = resolve_venv((home_ / "venv").string(), lookup());
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->folders, ElementsAre((root_ / "disk/venv").string()));
  ASSERT_EQ(plan->links.size(), 1u);
  EXPECT_EQ(plan->links[0].path, home_ / "venv");
  EXPECT_EQ(plan->virtual_env, home_ / "venv");
}

TEST_F(ActiveEnvironmentTest, AnInterpretersPrefixIsNoVirtualEnvironment) {
  program(home_ / "node/bin/node");
  const auto plan = resolve_venv((home_ / "node").string(), lookup());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->path_folder, home_ / "node/bin");
  EXPECT_EQ(plan->virtual_env, "");
}

TEST_F(ActiveEnvironmentTest, ABaseThatHoldsTheVenvCoversIt) {
  program(home_ / "conda/bin/python3");
  venv(home_ / "conda/envs/x", home_ / "conda/bin/python3");
  const auto plan = resolve_venv((home_ / "conda/envs/x").string(), lookup());
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->folders, ElementsAre((home_ / "conda").string()));
}

TEST_F(ActiveEnvironmentTest, RefusesWhatIsNoEnvironmentOrTooMuch) {
  program(home_ / "bin/python3");
  venv(home_ / "proj/.venv", home_ / "bin/python3");
  file(home_ / "file", "");
  fs::create_directories(home_ / "empty");
  EXPECT_THAT(refusal(""), HasSubstr("wants a folder"));
  EXPECT_THAT(refusal("/"), HasSubstr("holds more than an interpreter"));
  EXPECT_THAT(refusal("/home"), HasSubstr("/home"));
  EXPECT_THAT(refusal("/usr"), HasSubstr("holds more than an interpreter"));
  EXPECT_THAT(refusal("/usr/.."), HasSubstr("holds more than an interpreter"));
  EXPECT_THAT(refusal("/etc/ssl"), HasSubstr("/etc"));
  EXPECT_THAT(refusal(home_), HasSubstr("holds your home folder"));
  EXPECT_THAT(refusal(home_ / "gone"), HasSubstr("does not exist"));
  EXPECT_THAT(refusal(home_ / "file"), HasSubstr("is not a folder"));
  EXPECT_THAT(refusal(home_ / "empty"), HasSubstr("has no bin folder"));
  EXPECT_THAT(refusal(std::string("/x\0y", 4)), HasSubstr("NUL"));
  link(home_ / "loop", "loop");
  EXPECT_THAT(refusal(home_ / "loop"), HasSubstr("does not exist"));
  EXPECT_THAT(refusal(home_ / "proj/.venv"), HasSubstr("the base interpreter's folder"));
}

}  // namespace
}  // namespace belljar
