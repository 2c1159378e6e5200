// What init sends to the egress process: one message with the sockets of host::RedirectSockets in their order.
#pragma once

#include <cstdint>

namespace belljar::egress {

inline constexpr unsigned kLinkSockets = 6;

// A bit for each member of RedirectSockets that is there, in their order; as many descriptors come with it.
struct LinkMessage {
  std::uint32_t present;
};

}  // namespace belljar::egress
