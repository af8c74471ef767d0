memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
# Half of the memory, divided by the maximum number of concurrent jobs.
share = memory / 2 / outside["more"]["jobs"]
def size(path):
    space = os.statvfs(path)
    return space.f_blocks * space.f_frsize
trial("shared-memory", lambda: size("/dev/shm") > share + 4096)
def fill_shared_memory():
    # More memory than a test should use.
    if share > 1 << 30: return size("/dev/shm") > share + 4096
    path = "/dev/shm/simpletuner-trial-%d" % os.getpid()
    written = 0
    with open(path, "wb", buffering=0) as file:
        os.unlink(path)
        while written <= share + 4096: written += file.write(bytes(1 << 20))
    return written
trial("fill-shared-memory", fill_shared_memory, errno.ENOSPC)
trial("small-mounts", lambda: size("/") > 4 << 20 or size("/dev") > 64 << 10)
# /tmp must be on the disk, where it counts as the job's, and contain only parents of the job's directories.
trial("temporary-files", lambda: os.stat("/tmp").st_dev != os.stat(".").st_dev or [name for name in os.listdir("/tmp") if not os.getcwd().startswith("/tmp/" + name)])
# The agent's limit, which its trainers cannot exceed.
max_processes = resource.getrlimit(resource.RLIMIT_NPROC)[1]
def processes():
    # More processes than a test should start.
    if not 0 < max_processes <= 1000: return not 0 < max_processes <= 16384
    children = []
    try:
        while len(children) < max_processes + 50: children.append(os.posix_spawn("/bin/sleep", ["sleep", "1000"], {}))
    finally:
        for child in children: os.kill(child, 9)
        for child in children: os.waitpid(child, 0)
    return len(children)
trial("processes", processes, errno.EAGAIN)
