// The user that an image names for its programs.
#pragma once

#include <string_view>

#include "base/result.h"

namespace belljar {

struct UserIds {
  unsigned uid = 0;
  unsigned gid = 0;

  bool operator==(const UserIds&) const = default;
};

// What `user` (USER, UID, USER:GROUP, UID:GID ...) means with these /etc/passwd and /etc/group; "" is root. A UID
// without a line in /etc/passwd has the group 0. Never guesses: what is not of that form, names nobody, or is beyond
// kImageIdMax is refused with bad_image.
Result<UserIds> resolve_user(std::string_view user, std::string_view passwd, std::string_view group);

}  // namespace belljar
