#include "kernel/entry/stop.h"

#include "kernel/base/text.h"
#include "kernel/broker/broker_client.h"
#include "kernel/host/calls.h"

namespace belljar::kernel {

void stop_sandbox(const char* why) {
  shm::End& end = shared_with_broker().end;
  TextWriter text(end.why, sizeof end.why - 1);
  text << why << '\0';
  std::uint32_t running = shm::End::kRunning;  // else it has ended already, and this is of what was left
  end.kind.compare_exchange_strong(running, shm::End::kStopped);
  ring_broker();
  host::exit_group(124);
}

void stop_sandbox_at_fault(int signal, std::uint64_t instruction, std::uint64_t address) {
  char why[128];
  TextWriter text(why, sizeof why);
  text << "signal ";
  text.decimal(signal) << " in the kernel at ";
  text.hex(instruction) << ", address ";
  text.hex(address) << '\0';
  stop_sandbox(why);
}

}  // namespace belljar::kernel
