#include "kernel/task/question.h"

#include <errno.h>

#include <utility>

#include "kernel/task/signals.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kPatience = 3 * kNanosecondsPerSecond;

Question* take_questions(Process& process) {
  return process.questions.exchange(nullptr);
}

void settle(Question& question) {
  question.is_settled.store(true);
  question.settled.wake_all();
  question.release();
}

// Puts it where the process finds it, and has a thread look. False: there is none that could answer.
bool put(Pid pid, Question& question) {
  LockGuard guard(tasks_lock());
  Process* const process = find_process(pid);
  if (process == nullptr || process->state == ProcessState::zombie) return false;
  // Where none has begun, or all wait for a child of vfork(2), the first will find it.
  Task* task = process->first_task;
  while (task != nullptr && task->is_kickable.load() == 0) task = task->next_in_process;
  if (task == nullptr) task = process->first_task;
  if (task == nullptr) return false;
  question.acquire();
  question.next = process->questions.load();
  process->questions.store(&question);
  if (process->state == ProcessState::stopped) {
    kick(*task);
  } else {
    interrupt_for_work(*task);
  }
  return true;
}

// Whether it was still there: then nobody answers any more.
bool take_back(Pid pid, Question& question) {
  LockGuard guard(tasks_lock());
  Process* const process = find_process(pid);
  if (process == nullptr) return false;
  Question* list = take_questions(*process);
  bool is_found = false;
  for (Question** link = &list; *link != nullptr;) {
    if (*link == &question) {
      *link = question.next;
      is_found = true;
    } else {
      link = &(*link)->next;
    }
  }
  process->questions.store(list);
  if (is_found) question.release();
  return is_found;
}

}  // namespace

SysResult<bool> ask_process(Pid pid, Answer answer, LongText& to) {
  const Ref<Question> question = make_ref<Question>(answer);
  if (!question) return error(ENOMEM);
  if (!put(pid, *question)) return false;
  const Deadline deadline = now_ns() + kPatience;
  SysResult<void> slept;
  {
    Waiting waiting(question->settled);
    while (!question->is_settled && slept) slept = waiting.sleep(deadline);
  }
  const bool is_taken_back = !question->is_settled && take_back(pid, *question);
  if (!slept && value_of(slept.error()) != ETIMEDOUT) return std::unexpected(slept.error());
  if (is_taken_back || !question->is_settled || question->text.size() == 0) return false;
  to << question->text.text();
  return true;
}

void answer_questions() {
  Process& process = current_process();
  if (process.questions.load(std::memory_order_relaxed) == nullptr) return;
  Question* question = nullptr;
  {
    LockGuard guard(tasks_lock());
    question = take_questions(process);
  }
  while (question != nullptr) {
    Question* const next = question->next;
    question->answer(question->text);
    settle(*question);
    question = next;
  }
}

void drop_questions(Process& process) {
  for (Question* question = take_questions(process); question != nullptr;) {
    Question* const next = question->next;
    settle(*question);
    question = next;
  }
}

}  // namespace belljar::kernel
