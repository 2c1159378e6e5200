#include "tiers/container/frames.h"

#include <cstring>

namespace belljar::container {

const char* setup_step_text(SetupStep step) {
  static constexpr const char* kTexts[] = {
#define STEP(name, text) text,
      BELLJAR_SETUP_STEPS(STEP)
#undef STEP
  };
  return step < SetupStep::count ? kTexts[static_cast<std::uint32_t>(step)] : "an unknown step";
}

std::optional<Frame> read_frame(std::span<const std::byte> bytes) {
  Frame frame;
  if (bytes.size() != sizeof frame) return std::nullopt;
  std::memcpy(&frame, bytes.data(), sizeof frame);
  switch (frame.kind) {
    case FrameKind::setup_failed:
      if (frame.step >= SetupStep::count || frame.errno_value < 0 || frame.detail < 0) return std::nullopt;
      return frame;
    case FrameKind::exec_failed:
      if (frame.errno_value <= 0) return std::nullopt;
      return frame;
    case FrameKind::memory_exceeded:
    case FrameKind::terminal:
    case FrameKind::handles:
    case FrameKind::kernel_stopped:
      return frame;
    case FrameKind::exited: {
      const bool by_exit = frame.exit_code >= 0 && frame.exit_code <= 255 && frame.signal == -1;
      const bool by_signal = frame.signal >= 1 && frame.signal <= 64 && frame.exit_code == -1;
      if (!by_exit && !by_signal) return std::nullopt;
      return frame;
    }
  }
  return std::nullopt;
}

}  // namespace belljar::container
