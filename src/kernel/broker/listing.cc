#include "kernel/broker/listing.h"

#include <errno.h>

#include <cstring>

namespace belljar::kernel {

HostTree::Facts facts_of(const shm::Facts& from) {
  HostTree::Facts facts;
  facts.number = from.number;
  facts.size = from.size;
  facts.blocks = from.blocks;
  facts.rdev = from.rdev;
  facts.mode = from.mode;
  facts.uid = from.uid;
  facts.gid = from.gid;
  facts.links = from.links;
  facts.device = static_cast<std::uint32_t>(from.device);
  facts.access_time = {from.access_s, from.access_ns};
  facts.modify_time = {from.modify_s, from.modify_ns};
  facts.change_time = {from.change_s, from.change_ns};
  return facts;
}

SysResult<void> read_listing(const void* records, std::uint64_t size, HostTree::Visit visit, void* context) {
  const auto* at = static_cast<const char*>(records);
  while (size > 0) {
    shm::ListedName listed;
    if (size < sizeof listed) return error(EIO);
    std::memcpy(&listed, at, sizeof listed);
    const std::uint64_t record_size = sizeof listed + ((listed.name_size + 7ULL) & ~7ULL);
    if (size < record_size) return error(EIO);
    visit(context, {at + sizeof listed, listed.name_size}, facts_of(listed.facts));
    at += record_size;
    size -= record_size;
  }
  return {};
}

}  // namespace belljar::kernel
