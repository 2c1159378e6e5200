#include "image/path_trace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/fd.h"

namespace belljar {
namespace {

class PathTraceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "path_trace.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    std::filesystem::create_directories(root_ / "usr/bin");
    std::filesystem::create_directories(root_ / "etc/sub");
    std::ofstream(root_ / "usr/bin/tool") << "x";
    root_fd_ = *open_at(AT_FDCWD, root_.c_str(), O_PATH | O_DIRECTORY);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void link(const std::string& path, const std::string& text) { std::filesystem::create_symlink(text, root_ / path); }
  PathTrace trace(const std::string& path) { return trace_path(root_fd_.get(), path); }

  std::filesystem::path root_;
  Fd root_fd_;
};

TEST_F(PathTraceTest, FollowsChainsOfRelativeAndAbsoluteLinks) {
  link("usr/bin/a", "../../etc/b");
  link("etc/b", "/usr/bin/tool");
  const PathTrace found = trace("/usr/bin/a");
  ASSERT_EQ(found.end, TraceEnd::found);
  EXPECT_EQ(found.nodes.back().path, "usr/bin/tool");
  std::vector<std::string> links;
  for (const TraceNode& node : found.nodes) {
    if (!node.link_text.empty()) links.push_back(node.path);
  }
  EXPECT_EQ(links, (std::vector<std::string>{"usr/bin/a", "etc/b"}));
}

TEST_F(PathTraceTest, AnAbsoluteLinkStaysBelowTheRoot) {
  link("etc/escape", "/../../../../usr/bin/tool");
  EXPECT_EQ(trace("etc/escape").nodes.back().path, "usr/bin/tool");
  link("etc/host", "/proc/self/exe");  // exists on the host, but not below this root
  EXPECT_EQ(trace("etc/host").end, TraceEnd::missing);
}

TEST_F(PathTraceTest, ParentsOfALinkedFolderAreThoseOfItsTarget) {
  link("usr/there", "/etc/sub");
  EXPECT_EQ(trace("usr/there/..").nodes.back().path, "etc");
  EXPECT_EQ(trace("usr/there/../..").end, TraceEnd::found);
  EXPECT_TRUE(trace("usr/there/../..").nodes.empty());
}

TEST_F(PathTraceTest, ReportsLoopsAndWhatIsMissing) {
  link("etc/loop", "loop");
  link("etc/ping", "pong");
  link("etc/pong", "ping");
  EXPECT_EQ(trace("etc/loop").end, TraceEnd::loop);
  EXPECT_EQ(trace("etc/ping/x").end, TraceEnd::loop);
  EXPECT_EQ(trace("etc/nothing").end, TraceEnd::missing);
  EXPECT_EQ(trace("usr/bin/tool/x").end, TraceEnd::missing);
}

TEST(IsWithin, ComparesWholeComponents) {
  EXPECT_TRUE(is_within("etc/ssl", "etc/ssl"));
  EXPECT_TRUE(is_within("etc/ssl/private", "etc/ssl"));
  EXPECT_FALSE(is_within("etc/sslx", "etc/ssl"));
  EXPECT_FALSE(is_within("etc", "etc/ssl"));
}

}  // namespace
}  // namespace belljar
