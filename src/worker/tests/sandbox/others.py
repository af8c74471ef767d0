# A process outside, of the same user as the trainer where that can be: what is set is what was there. At `files` a trainer can
# slow it down, as threads of its own are pinned by the same calls.
other = outside["pid"]
trial("kill", lambda: os.kill(other, signal.SIGCONT) or True)
trial("limit-others", lambda: resource.prlimit(other, resource.RLIMIT_CPU, resource.prlimit(other, resource.RLIMIT_CPU)) and True)
trial("read-others", lambda: try_open("/proc/%d/mem" % other))
