# A process outside, of the trainer's user if possible. Values are set to what they already are.
other = outside["pid"]
trial("kill", lambda: os.kill(other, signal.SIGCONT) or True)
trial("renice", lambda: os.setpriority(os.PRIO_PROCESS, other, os.getpriority(os.PRIO_PROCESS, other)) or True)
trial("limit-others", lambda: resource.prlimit(other, resource.RLIMIT_CPU, resource.prlimit(other, resource.RLIMIT_CPU)) and True)
trial("pin-others", lambda: os.sched_setaffinity(other, os.sched_getaffinity(other)) or True)
trial("read-others", lambda: try_open("/proc/%d/mem" % other))
