// Who one is and what one may: ids, groups, capabilities, limits, priorities, prctl, names of the machine.
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void ids(void) {
  const uid_t uid = getuid();
  uid_t real, effective, saved;
  CALL("getresuid", getresuid(&real, &effective, &saved));
  FACT("all the same", real == uid && effective == uid && saved == uid);
  CALL("setuid to oneself", setuid(uid));
  CALL("setuid to another", setuid(uid + 1));
  CALL("setuid to -1", setuid((uid_t)-1));
  CALL("setreuid of nothing", setreuid((uid_t)-1, (uid_t)-1));
  CALL("setreuid to another", setreuid(uid, uid + 1));
  CALL("setresuid to another", setresuid((uid_t)-1, (uid_t)-1, uid + 1));
  CALL("setgid to another", setgid(getgid() + 1));
  FACT("setfsuid tells the old", setfsuid(uid + 1) == (int)uid);
  FACT("and changes nothing", setfsuid(uid) == (int)uid);
  CALL("setgroups", setgroups(0, NULL));
  CALL("getgroups", getgroups(0, NULL));
  CALL("negative room", getgroups(-1, NULL));
}

static void capabilities(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  CALL("capget", syscall(SYS_capget, &header, data));
  FACT("none effective", data[0].effective | data[1].effective);
  FACT("none permitted", data[0].permitted | data[1].permitted);
  data[0].effective = 1;
  CALL("capset", syscall(SYS_capset, &header, data));
  header.version = 1;
  CALL("odd version", syscall(SYS_capget, &header, data));
  FACT("the version told", header.version == _LINUX_CAPABILITY_VERSION_3);
  CALL("bounding set, odd", prctl(PR_CAPBSET_READ, 500));
  CALL("ambient", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 0, 0, 0));
  FACT("no new privileges", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  CALL("which can't be unset", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
  CALL("host name", sethostname("x", 1));
  CALL("chroot", chroot("."));
  CALL("nice below", setpriority(PRIO_PROCESS, 0, -5));
}

static void limits(void) {
  struct rlimit limit;
  CALL("get", getrlimit(RLIMIT_MSGQUEUE, &limit));
  limit.rlim_cur = limit.rlim_max = 0;
  CALL("lower", setrlimit(RLIMIT_MSGQUEUE, &limit));
  limit.rlim_max = 1;
  CALL("raise", setrlimit(RLIMIT_MSGQUEUE, &limit));
  limit.rlim_cur = 2;
  CALL("soft above hard", setrlimit(RLIMIT_MSGQUEUE, &limit));
  CALL("odd resource", getrlimit(99, &limit));
  CALL("of a missing process", prlimit(31234, RLIMIT_MSGQUEUE, NULL, &limit));
  MUST(getrlimit(RLIMIT_NOFILE, &limit));
  const int pid = MUST(fork());
  if (pid == 0) {
    struct rlimit own;
    getrlimit(RLIMIT_NOFILE, &own);
    const int same = own.rlim_cur == limit.rlim_cur;
    own.rlim_cur = 10;
    setrlimit(RLIMIT_NOFILE, &own);
    _exit(same);
  }
  int status;
  MUST(waitpid(pid, &status, 0));
  FACT("a child inherits", WEXITSTATUS(status));
  struct rlimit after;
  MUST(getrlimit(RLIMIT_NOFILE, &after));
  FACT("and changes its own", after.rlim_cur == limit.rlim_cur);
}

static void no_more_processes(void) {
  if (getuid() == 0) MUST(setuid(65534));  // the host's own root may start more
  struct rlimit limit;
  MUST(getrlimit(RLIMIT_NPROC, &limit));
  limit.rlim_cur = 0;
  MUST(setrlimit(RLIMIT_NPROC, &limit));
  const int pid = fork();
  if (pid == 0) _exit(0);
  CALL("fork past the limit of processes", pid);
  limit.rlim_cur = limit.rlim_max;
  MUST(setrlimit(RLIMIT_NPROC, &limit));
  int status;
  const int allowed = MUST(fork());
  if (allowed == 0) _exit(0);
  CALL("fork below it", waitpid(allowed, &status, 0) > 0 ? 0 : -1);
}

static void priorities(void) {
  FACT("niceness", getpriority(PRIO_PROCESS, 0));
  CALL("nicer", setpriority(PRIO_PROCESS, 0, 5));
  FACT("niceness", getpriority(PRIO_PROCESS, 0));
  CALL("less nice", setpriority(PRIO_PROCESS, 0, 1));
  CALL("nobody's", setpriority(PRIO_PROCESS, 31234, 5));
  CALL("odd kind", setpriority(9, 0, 5));
  struct sched_param parameter = {0};
  FACT("policy", sched_getscheduler(0));
  CALL("batch", sched_setscheduler(0, SCHED_BATCH, &parameter));
  FACT("policy", sched_getscheduler(0));
  parameter.sched_priority = 1;
  CALL("real time", sched_setscheduler(0, SCHED_FIFO, &parameter));
  CALL("priority of a batch one", sched_setparam(0, &parameter));
  FACT("highest", sched_get_priority_max(SCHED_FIFO));
  CALL("odd policy", sched_get_priority_max(77));
  cpu_set_t set;
  CALL("affinity", sched_getaffinity(0, sizeof set, &set));
  FACT("some", CPU_COUNT(&set) > 0);
  CALL("set to the same", sched_setaffinity(0, sizeof set, &set));
  CPU_ZERO(&set);
  CALL("set to none", sched_setaffinity(0, sizeof set, &set));
  CALL("yield", sched_yield());
}

static void controls(void) {
  char name[16] = "";
  CALL("name", prctl(PR_SET_NAME, "a very long name for a thread"));
  MUST(prctl(PR_GET_NAME, name));
  printf("name: %s\n", name);
  int value = -1;
  MUST(prctl(PR_SET_PDEATHSIG, SIGUSR1));
  MUST(prctl(PR_GET_PDEATHSIG, &value));
  FACT("parent's death", value);
  CALL("odd signal", prctl(PR_SET_PDEATHSIG, 99));
  CALL("odd dumpable", prctl(PR_SET_DUMPABLE, 5));
  MUST(prctl(PR_SET_DUMPABLE, 0));
  FACT("dumpable", prctl(PR_GET_DUMPABLE));
  MUST(prctl(PR_SET_TIMERSLACK, 1234));
  FACT("slack", prctl(PR_GET_TIMERSLACK));
  FACT("keep capabilities", prctl(PR_GET_KEEPCAPS));
  CALL("unknown", prctl(98765));
  const int pid = MUST(fork());
  if (pid == 0) {
    prctl(PR_GET_PDEATHSIG, &value);
    _exit(value * 10 + (prctl(PR_GET_TIMERSLACK) == 1234));
  }
  int status;
  MUST(waitpid(pid, &status, 0));
  FACT("a child has the slack, not the signal", WEXITSTATUS(status));
  struct utsname names;
  MUST(uname(&names));
  printf("system: %s %s\n", names.sysname, names.machine);
  CALL("bad address", uname((struct utsname*)8));
}

int main(void) {
  ids();
  capabilities();
  limits();
  no_more_processes();
  priorities();
  controls();
}
