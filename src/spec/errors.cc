#include "spec/errors.h"

namespace belljar {

std::string_view error_name(ErrorCode code) {
  switch (code) {
#define ERROR(name, exit_status, text) \
  case ErrorCode::name:                \
    return #name;
#include "spec/errors.def"
#undef ERROR
  }
  return "internal";
}

int error_exit_status(ErrorCode code) {
  switch (code) {
#define ERROR(name, exit_status, text) \
  case ErrorCode::name:                \
    return exit_status;
#include "spec/errors.def"
#undef ERROR
  }
  return 125;
}

std::string_view error_text(ErrorCode code) {
  switch (code) {
#define ERROR(name, exit_status, text) \
  case ErrorCode::name:                \
    return text;
#include "spec/errors.def"
#undef ERROR
  }
  return "Belljar failed";
}

}  // namespace belljar
