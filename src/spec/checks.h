// The rules for single values of a SandboxSpec, used wherever such a value comes from. `where` names the flag, the
// policy key or the field for the error.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "spec/sandbox_spec.h"

namespace belljar {

// The kernel takes no longer string as an argument or as NAME=VALUE: MAX_ARG_STRLEN, execve(2).
inline constexpr std::size_t kArgumentBytesMax = 131071;

// No NUL byte and at most kArgumentBytesMax bytes.
Result<void> check_argument(std::string_view text, std::string_view where);

// Not empty, no NUL byte, at most PATH_MAX - 1 bytes.
Result<void> check_path(std::string_view path, std::string_view where);

// The absolute path `path` without "//", "/./" and a "/" at its end; ".." is refused, because where it leads depends on
// links.
Result<std::string> normal_inside_path(std::string_view path, std::string_view where);

// For --hide; also makes the path normal. The sandbox's own folders show nothing of the host, and it needs them.
Result<std::string> checked_hidden_path(std::string_view path, std::string_view where);

Result<void> check_environment_name(std::string_view name, std::string_view where);
Result<void> check_environment_variable(const EnvironmentVariable& variable, std::string_view where);

// Also makes the target normal.
Result<MountSpec> checked_mount(MountSpec mount, std::string_view where);

// Letters, digits and . _ - : , beginning with a letter or digit, at most 128.
bool is_image_name(std::string_view name);
Result<void> check_image_name(std::string_view name, std::string_view where);

// What --image takes is a path where there is a "/" in it or a "." before it, else a name.
bool is_image_path(std::string_view reference);
Result<void> check_image_reference(std::string_view reference, std::string_view where);

// Also makes the source normal. A source lies in the writable space: in /tmp, or in a folder right below the root that
// is made for it, so the first part of it can't hold a wildcard.
Result<CollectSpec> checked_collect(CollectSpec collect, std::string_view where);
bool has_wildcard(std::string_view text);

// Letters, digits and . _ - only, at most 64, and no . or - at its beginning.
Result<void> check_profile_name(std::string_view name, std::string_view where);

Result<void> check_tier(std::string_view name, std::string_view where);
Result<void> check_required(std::string_view name, std::string_view where);
Result<void> check_limit_name(std::string_view name, std::string_view where);

}  // namespace belljar
