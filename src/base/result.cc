#include "base/result.h"

#include <cstring>

namespace belljar {

const char* errno_text(int errno_value) {
  const char* text = strerrordesc_np(errno_value);
  return text != nullptr ? text : "unknown error";
}

}  // namespace belljar
