// What only a process itself can tell, as what is in its memory, it is asked: one of its threads answers when it comes
// by the kernel, which a host signal makes it do soon.
#pragma once

#include "kernel/fs/long_text.h"
#include "kernel/task/process.h"

namespace belljar::kernel {

// Run by a thread of the asked process, without locks.
using Answer = void (*)(LongText& to);

class Question final : public Counted {
 public:
  explicit Question(Answer wanted) : answer(wanted) {}
  const Answer answer;
  LongText text;
  std::atomic<bool> is_settled = false;  // then nobody writes to `text` any more
  WaitQueue settled;
  Question* next = nullptr;  // of the same process; the tasks lock holds it
};

// Waits for the answer of another process, and writes it. False: there is none; the process has ended, or has no thread
// that answers within three seconds.
SysResult<bool> ask_process(Pid pid, Answer answer, LongText& to);

// By a thread that holds no lock: answers what its process was asked. Cheap where that is nothing.
void answer_questions();
// At the end of a process, under the tasks lock: who asked gets no answer.
void drop_questions(Process& process);

}  // namespace belljar::kernel
