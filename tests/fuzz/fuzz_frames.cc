// Fuzzes the reading of init's reports: whatever arrives, a frame that is taken is one that init could have sent.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tiers/container/frames.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar::container;
  const auto frame = read_frame(std::as_bytes(std::span(data, size)));
  if (!frame) return 0;
  if (setup_step_text(frame->step) == nullptr) std::abort();
  if (frame->kind == FrameKind::exited && (frame->exit_code >= 0) == (frame->signal >= 1)) std::abort();
  if (frame->kind == FrameKind::setup_failed && frame->step >= SetupStep::count) std::abort();
  return 0;
}
