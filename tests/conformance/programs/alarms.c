// Timers that send signals: alarm, setitimer of three kinds, timer_create with values, threads and overruns.
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static volatile sig_atomic_t count, last, value, code;

static void on_signal(int signal, siginfo_t* info, void* context) {
  (void)context;
  ++count;
  last = signal;
  code = info->si_code;
  value = info->si_value.sival_int;
}

static void catch (int signal) {
  const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
  MUST(sigaction(signal, &action, NULL));
}

static void spin(int milliseconds) {
  struct timespec now;
  MUST(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now));
  const long until = now.tv_sec * 1000 + now.tv_nsec / 1000000 + milliseconds;
  do {
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < until);
}

static void nap(int milliseconds) {
  struct timespec left = {0, milliseconds * 1000000L};
  while (nanosleep(&left, &left) < 0) continue;
}

static void alarms(void) {
  catch (SIGALRM);
  FACT("alarm", alarm(100));
  FACT("alarm again", alarm(50));
  const struct itimerval soon = {{0, 0}, {0, 10000}};
  struct itimerval old;
  MUST(setitimer(ITIMER_REAL, &soon, &old));
  FACT("is the same timer", old.it_value.tv_sec >= 49 && old.it_value.tv_sec <= 50);
  CALL("pause", pause());
  FACT("signal", last);
  MUST(getitimer(ITIMER_REAL, &old));
  FACT("over", old.it_value.tv_sec + old.it_value.tv_usec);
  const struct itimerval wrong = {{0, 0}, {0, 1000000}};
  CALL("wrong time", setitimer(ITIMER_REAL, &wrong, NULL));
  CALL("wrong timer", setitimer(9, &soon, NULL));
  count = 0;
  const struct itimerval often = {{0, 5000}, {0, 5000}};
  MUST(setitimer(ITIMER_REAL, &often, NULL));
  while (count < 5) pause();
  const struct itimerval off = {{0, 0}, {0, 0}};
  MUST(setitimer(ITIMER_REAL, &off, NULL));
  count = 0;
  nap(20);
  FACT("off", count);
}

static void processor_time(void) {
  catch (SIGPROF);
  catch (SIGVTALRM);
  count = 0;
  const struct itimerval soon = {{0, 0}, {0, 30000}};
  MUST(setitimer(ITIMER_PROF, &soon, NULL));
  nap(60);
  FACT("sleeping does not count", count);
  while (count == 0) spin(1);
  FACT("working does", last);
  MUST(setitimer(ITIMER_VIRTUAL, &soon, NULL));
  for (volatile long i = 0; count == 1; ++i) continue;  // no calls: time in the kernel does not count
  FACT("in user mode", last);
}

static void posix_timers(void) {
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 77};
  catch (SIGUSR1);
  count = 0;
  CALL("create", timer_create(CLOCK_MONOTONIC, &event, &timer));
  const struct itimerspec soon = {{0, 0}, {0, 10000000}};
  CALL("set", timer_settime(timer, 0, &soon, NULL));
  while (count == 0) pause();
  printf("signal %d, code %d, value %d\n", (int)last, (int)code, (int)value);
  struct itimerspec left;
  MUST(timer_gettime(timer, &left));
  FACT("over", left.it_value.tv_sec + left.it_value.tv_nsec);

  sigset_t set, old;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  MUST(sigprocmask(SIG_BLOCK, &set, &old));
  const struct itimerspec often = {{0, 1000000}, {0, 1000000}};
  MUST(timer_settime(timer, 0, &often, NULL));
  nap(30);
  siginfo_t info;
  count = 0;
  FACT("one signal", sigwaitinfo(&set, &info));
  FACT("overruns", timer_getoverrun(timer) >= 10);
  const struct itimerspec off = {{0, 0}, {0, 0}};
  MUST(timer_settime(timer, 0, &off, NULL));
  MUST(sigprocmask(SIG_SETMASK, &old, NULL));
  count = 0;

  struct timespec now;
  MUST(clock_gettime(CLOCK_REALTIME, &now));
  timer_t absolute;
  MUST(timer_create(CLOCK_REALTIME, &event, &absolute));
  const struct itimerspec past = {{0, 0}, now};
  MUST(timer_settime(absolute, TIMER_ABSTIME, &past, NULL));
  nap(30);
  FACT("a time that is past", count);
  CALL("wrong time", timer_settime(absolute, 0, &(struct itimerspec){{0, 0}, {0, -1}}, NULL));
  CALL("delete", timer_delete(absolute));
  event.sigev_notify = SIGEV_NONE;
  timer_t silent;
  MUST(timer_create(CLOCK_BOOTTIME, &event, &silent));
  const struct itimerspec far = {{0, 0}, {100, 0}};
  MUST(timer_settime(silent, 0, &far, NULL));
  MUST(timer_gettime(silent, &left));
  FACT("what is left", left.it_value.tv_sec == 99 || left.it_value.tv_sec == 100);
  event.sigev_notify = 55;
  CALL("odd notice", timer_create(CLOCK_MONOTONIC, &event, &silent));
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = 99;
  CALL("odd signal", timer_create(CLOCK_MONOTONIC, &event, &silent));
  CALL("odd clock", timer_create(99, NULL, &silent));
  CALL("unknown", syscall(SYS_timer_gettime, 999, &left));
}

static void children(void) {
  alarm(100);
  const int pid = MUST(fork());
  if (pid == 0) _exit(alarm(0) != 0);
  int status;
  MUST(waitpid(pid, &status, 0));
  FACT("a child has no alarm", WEXITSTATUS(status));
  alarm(0);
  const int other = MUST(fork());
  if (other == 0) {
    signal(SIGALRM, SIG_DFL);
    const struct itimerval soon = {{0, 0}, {0, 30000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    execl("/bin/sleep", "sleep", "10", NULL);
    _exit(1);
  }
  MUST(waitpid(other, &status, 0));
  FACT("an alarm lives across exec", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

int main(void) {
  alarms();
  processor_time();
  posix_timers();
  children();
}
