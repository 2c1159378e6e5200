// Unified diffs, as diff -u writes them, of two texts that may be anyone's.
#pragma once

#include <string>
#include <string_view>

namespace belljar {

// The hunks, without a header; empty where the texts are equal. Takes time and memory linear in the texts, but for a
// bounded search: texts that differ by more than some thousand lines may be shown as replaced in whole.
std::string unified_hunks(std::string_view before, std::string_view after);

// Not to be shown line by line.
bool is_binary(std::string_view content);

}  // namespace belljar
