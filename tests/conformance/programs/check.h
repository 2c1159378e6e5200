// What the conformance programs share: each prints facts, one a line, that must not depend on where it runs.
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// "what: value"
#define FACT(what, value) printf("%s: %lld\n", what, (long long)(value))

// "what: 0", or the error's name: what a call that returns -1 on failure came to. Results above 0 (descriptors, pids)
// depend on the place, so they count as 0.
#define CALL(what, call)                                                  \
  do {                                                                    \
    errno = 0;                                                            \
    const long long result_ = (long long)(call);                          \
    printf("%s: %s\n", what, result_ < 0 ? strerrorname_np(errno) : "0"); \
  } while (0)

// Ends the program where going on makes no sense.
#define MUST(call)                                                                  \
  __extension__({                                                                   \
    const long long must_ = (long long)(call);                                      \
    if (must_ < 0) {                                                                \
      fflush(stdout);                                                               \
      printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, strerrorname_np(errno)); \
      exit(1);                                                                      \
    }                                                                               \
    (int)must_;                                                                     \
  })
