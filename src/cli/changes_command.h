// `belljar changes list | diff | apply | discard`: from arguments to a checked request.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace belljar {

enum class ChangesVerb { list, diff, apply, discard };

struct ChangesRequest {
  ChangesVerb verb = ChangesVerb::list;
  bool json = false;
  std::string id;                  // but for list
  std::vector<std::string> paths;  // for diff and apply: below the workspace, without "." and ".."; none: all
};

// `arguments` are those after "changes". Returns the exit status.
int changes_command(std::span<char* const> arguments);

std::string changes_help();

}  // namespace belljar
