// Fuzzes the reading of belljar-wasm's report: what is taken can be written again, and holds nothing active.
#include <cstdint>
#include <cstdlib>

#include "base/utf8.h"
#include "wasm/report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar;
  const auto report = wasm::decode_report({reinterpret_cast<const char*>(data), size});
  if (!report) return 0;
  if (report->ending > wasm::kEndingLast) std::abort();
  if (one_line(report->message, wasm::kReportBytesMax) != report->message) std::abort();
  const auto again = wasm::decode_report(wasm::encode(*report));
  if (!again || again->exit_code != report->exit_code || again->fuel_used != report->fuel_used) std::abort();
  return 0;
}
