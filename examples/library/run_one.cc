// Runs one small program in a sandbox and prints what came of it.

#include <belljar/belljar.h>

#include <cstdio>

int main() {
  belljar::SandboxSpec spec;
  spec.command = {"sh", "-c", "echo hello from the sandbox; ls /root; exit 3"};
  spec.limits.timeout = {.value = 5000, .source = belljar::LimitSource::named};  // milliseconds

  const belljar::Result<belljar::Outcome> outcome = belljar::run(spec);
  if (!outcome) {
    std::fprintf(stderr, "refused: %s\n", outcome.error().message.c_str());
    return 1;
  }
  std::printf("output: %s", outcome->standard_output.bytes.c_str());
  std::printf("exit code %d after %llu ms, %llu KiB at most\n", outcome->exit_code.value_or(-1),
              static_cast<unsigned long long>(outcome->duration_ms),
              static_cast<unsigned long long>(outcome->usage.memory_peak_bytes / 1024));
  std::printf("walls: %zu enforced, %zu weaker, %zu missing\n", outcome->isolation.enforced.size(),
              outcome->isolation.weaker.size(), outcome->isolation.missing.size());
  return 0;
}
