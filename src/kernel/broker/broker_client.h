// The guest's side of the broker: requests over the shared slots. No thread of a guest can ask the host for anything
// else.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernel/broker/rings_shm.h"
#include "kernel/fs/host_tree.h"

namespace belljar::kernel {

// A slot of the ring for one request; given back at the end of the scope.
class [[nodiscard]] BrokerCall {
 public:
  BrokerCall(shm::Operation operation, std::string_view path);
  ~BrokerCall();
  BrokerCall(const BrokerCall&) = delete;
  BrokerCall& operator=(const BrokerCall&) = delete;

  shm::Request& request() { return *request_; }
  // Posts it and waits for the answer: a count, or the broker's errno. Signals are held back meanwhile.
  SysResult<std::uint64_t> send();

 private:
  shm::Request* request_;
};

// The tree as the broker shows it.
HostTree& broker_tree();

// Wakes the broker where it sleeps.
void ring_broker();

}  // namespace belljar::kernel
