#include "kernel/broker/broker_client.h"

#include <errno.h>
#include <linux/futex.h>

#include <cstring>

#include "kernel/arena/layout.h"
#include "kernel/broker/listing.h"
#include "kernel/host/calls.h"
#include "kernel/task/sandbox_facts.h"

namespace belljar::kernel {
namespace {

constexpr int kSpins = 2000;  // about as long as the broker takes for what it has in memory

std::uint32_t* raw(std::atomic<std::uint32_t>& word) {
  return reinterpret_cast<std::uint32_t*>(&word);
}

shm::Request& take_slot() {
  shm::Shared& shared = shared_with_broker();
  while (true) {
    for (shm::Request& request : shared.requests) {
      std::uint32_t expected = shm::Request::kFree;
      if (request.state.compare_exchange_strong(expected, shm::Request::kTaken)) return request;
    }
    host::sched_yield();
  }
}

class BrokerTree final : public HostTree {
 public:
  SysResult<Facts> stat(std::string_view path) override {
    BrokerCall call(shm::Operation::stat, path);
    TRY(call.send());
    return facts_of(call.request().facts);
  }

  SysResult<void> list(std::string_view path, Visit visit, void* context) override {
    BrokerCall call(shm::Operation::list, path);
    TRY(call.send());
    const shm::Request& answer = call.request();
    return read_listing(reinterpret_cast<const void*>(kContentBase + answer.offset), answer.size, visit, context);
  }

  SysResult<std::size_t> read_link(std::string_view path, char* to, std::size_t size) override {
    BrokerCall call(shm::Operation::read_link, path);
    const std::uint64_t length = TRY(call.send());
    std::memcpy(to, call.request().data, length < size ? length : size);
    return length;
  }

  SysResult<Content> fetch(std::string_view path, Wanted wanted) override {
    BrokerCall call(shm::Operation::fetch, path);
    call.request().arguments[0] = wanted == Wanted::whole ? shm::kWhole : shm::kAny;
    const std::uint64_t fetched = TRY(call.send());
    const shm::Request& answer = call.request();
    if (fetched == shm::kInParts) return Content{.size = answer.size, .is_in_parts = true};
    const shm::PatchedText& text = answer.text;
    return Content{answer.offset, answer.size, answer.image_id,
                   PatchedText{text.source, text.size, text.distance, text.offset, text.trampoline_size}};
  }

  SysResult<std::uint64_t> read(std::string_view path, std::uint64_t offset, Buffers& to) override {
    BrokerCall call(shm::Operation::read, path);
    call.request().arguments[0] = offset;
    call.request().arguments[1] = to.left();
    const std::uint64_t told = TRY(call.send());
    const std::uint64_t count = told < to.left() ? told : to.left();
    TRY_VOID(to.put(call.request().data, count < shm::Request::kDataSize ? count : shm::Request::kDataSize));
    return count;
  }

  SysResult<std::size_t> read_live(std::string_view path, std::uint64_t offset, char* to, std::size_t size) override {
    BrokerCall call(shm::Operation::read_live, path);
    call.request().arguments[0] = offset;
    const std::uint64_t count = TRY(call.send());
    const std::size_t copied = count < size ? count : size;
    std::memcpy(to, call.request().data, copied);
    return copied;
  }
};

}  // namespace

BrokerCall::BrokerCall(shm::Operation operation, std::string_view path) : request_(&take_slot()) {
  request_->operation = operation;
  request_->result = path.size() < shm::Request::kPathSize ? 0 : -ENAMETOOLONG;
  const std::size_t size = request_->result == 0 ? path.size() : 0;
  std::memcpy(request_->path, path.data(), size);
  request_->path[size] = '\0';
}

BrokerCall::~BrokerCall() {
  request_->state.store(shm::Request::kFree);
}

SysResult<std::uint64_t> BrokerCall::send() {
  if (request_->result != 0) return error(static_cast<int>(-request_->result));
  request_->state.store(shm::Request::kPosted);
  ring_broker();
  const int spins = sandbox_facts().cpu_count < 2 ? 0 : kSpins;  // the broker would wait for this processor
  for (int i = 0; i < spins && request_->state.load(std::memory_order_relaxed) == shm::Request::kPosted; ++i) {
    __builtin_ia32_pause();
  }
  while (request_->state.load() == shm::Request::kPosted) {
    host::futex(raw(request_->state), FUTEX_WAIT, shm::Request::kPosted, nullptr, nullptr, 0);
  }
  const std::int64_t result = request_->result;
  if (result < 0) return error(static_cast<int>(-result));
  return static_cast<std::uint64_t>(result);
}

void ring_broker() {
  shm::Shared& shared = shared_with_broker();
  shared.doorbell.fetch_add(1);
  if (shared.broker_waits.load() != 0) host::futex(raw(shared.doorbell), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// Without state of its own: each process has the same.
HostTree& broker_tree() {
  static constinit BrokerTree tree;
  return tree;
}

}  // namespace belljar::kernel
