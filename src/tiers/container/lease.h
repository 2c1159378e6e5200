// Leases of numbered slots among all Belljar processes of a host: uid ranges, processor pins. A lease is a lock on one
// byte of a shared file (F_OFD_SETLK, fcntl(2)): the kernel gives it back when its last holder dies, however it dies.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace belljar::container {

class LeaseFile {
 public:
  // Opens (and makes) `name` in Belljar's run folder: /run/belljar for root, $XDG_RUNTIME_DIR/belljar otherwise.
  static Result<LeaseFile> open(const std::string& name);

  // Takes the lease on `slot`; false when someone else holds it. Held until this object and all copies of its
  // descriptor in other processes are gone.
  bool try_take(std::uint64_t slot) const;

  int fd() const { return fd_.get(); }

 private:
  explicit LeaseFile(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

struct UidRange {
  LeaseFile lease;
  unsigned base;  // first host uid and gid of kIdRangeSize
};

// A range of host ids that no other sandbox has, away from those of /etc/subuid and /etc/subgid.
Result<UidRange> lease_uid_range();

// The run folder, made when missing.
Result<std::string> run_folder();

}  // namespace belljar::container
