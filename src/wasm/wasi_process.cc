#include <sched.h>
#include <sys/random.h>

#include <cerrno>

#include "wasm/wasi_calls.h"
#include "wasm/wasi_results.h"

namespace belljar::wasm::calls {
namespace {

// Each text with a NUL after it, and a pointer to each.
WasiErrno store_texts(const Wasi& wasi, const std::vector<std::string>& all, u32 pointers, u32 texts) {
  for (const std::string& text : all) {
    const auto place = wasi.memory().bytes(texts, text.size() + 1);
    if (!place || !wasi.memory().store(pointers, texts)) return WasiErrno::fault;
    std::memcpy(place->data(), text.c_str(), text.size() + 1);
    pointers += sizeof(u32);
    texts += static_cast<u32>(text.size() + 1);
  }
  return WasiErrno::success;
}

WasiErrno store_sizes(const Wasi& wasi, const std::vector<std::string>& all, u32 count, u32 bytes) {
  u32 total = 0;
  for (const std::string& text : all) total += static_cast<u32>(text.size() + 1);
  const bool is_stored = wasi.memory().store(count, static_cast<u32>(all.size())) && wasi.memory().store(bytes, total);
  return is_stored ? WasiErrno::success : WasiErrno::fault;
}

}  // namespace

WasiErrno args_get(Wasi& wasi, u32 pointers, u32 texts) {
  return store_texts(wasi, wasi.arguments(), pointers, texts);
}

WasiErrno args_sizes_get(Wasi& wasi, u32 count, u32 bytes) {
  return store_sizes(wasi, wasi.arguments(), count, bytes);
}

WasiErrno environ_get(Wasi& wasi, u32 pointers, u32 texts) {
  return store_texts(wasi, wasi.environment(), pointers, texts);
}

WasiErrno environ_sizes_get(Wasi& wasi, u32 count, u32 bytes) {
  return store_sizes(wasi, wasi.environment(), count, bytes);
}

void proc_exit(Wasi& wasi, u32 code) {
  wasi.exit(code);
}

// As a program that dies of the signal: a shell shows it as 128 and the signal.
WasiErrno proc_raise(Wasi& wasi, u32 signal) {
  constexpr u32 kSignalExitStatus = 128;
  constexpr u32 kSignals = 31;
  if (signal == 0 || signal >= kSignals) return WasiErrno::inval;
  wasi.exit(kSignalExitStatus + signal);
  return WasiErrno::success;
}

WasiErrno random_get(Wasi& wasi, u32 buffer, u32 size) {
  const auto place = wasi.memory().bytes(buffer, size);
  if (!place) return WasiErrno::fault;
  std::size_t done = 0;
  while (done < place->size()) {
    const ssize_t count = ::getrandom(place->data() + done, place->size() - done, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return wasi_errno(errno);
    done += static_cast<std::size_t>(count);
  }
  return WasiErrno::success;
}

WasiErrno sched_yield(Wasi&) {
  ::sched_yield();
  return WasiErrno::success;
}

// No socket is ever handed over.
WasiErrno sock_accept(Wasi& wasi, u32 fd, u32, u32) {
  return wasi.find(fd) == nullptr ? WasiErrno::badf : WasiErrno::notsock;
}

WasiErrno sock_recv(Wasi& wasi, u32 fd, u32, u32, u32, u32, u32) {
  return wasi.find(fd) == nullptr ? WasiErrno::badf : WasiErrno::notsock;
}

WasiErrno sock_send(Wasi& wasi, u32 fd, u32, u32, u32, u32) {
  return wasi.find(fd) == nullptr ? WasiErrno::badf : WasiErrno::notsock;
}

WasiErrno sock_shutdown(Wasi& wasi, u32 fd, u32) {
  return wasi.find(fd) == nullptr ? WasiErrno::badf : WasiErrno::notsock;
}

}  // namespace belljar::wasm::calls
