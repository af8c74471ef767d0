# A process outside, of the same user as the trainer where that can be: what is set is what was there.
other = outside["pid"]
trial("kill", lambda: os.kill(other, signal.SIGCONT) or True)
trial("renice", lambda: os.setpriority(os.PRIO_PROCESS, other, os.getpriority(os.PRIO_PROCESS, other)) or True)
trial("limit-others", lambda: resource.prlimit(other, resource.RLIMIT_CPU, resource.prlimit(other, resource.RLIMIT_CPU)) and True)
trial("pin-others", lambda: os.sched_setaffinity(other, os.sched_getaffinity(other)) or True)
trial("read-others", lambda: try_open("/proc/%d/mem" % other))
