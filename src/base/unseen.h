#pragma once

namespace belljar {

// Characters that are seen nowhere (Default_Ignorable_Code_Point). quote() and one_line() show them as \u200b; a
// case-insensitive folder (ext4, f2fs) leaves them out when it compares names.
bool is_unseen(char32_t c);

// Those, and characters that look like a space or the end of a line and are neither to most programs: quote() and
// one_line() show them too.
bool misleads_reader(char32_t c);

}  // namespace belljar
