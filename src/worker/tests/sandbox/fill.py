def fill_shared_memory():
    written = 0
    with open("/dev/shm/fill", "wb") as file:
        while written < 1 << 40:
            try: written += file.write(b"x" * (1 << 24))
            except OSError: break
            if written > 16 << 30: return True
    return False
memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
def size(path):
    space = os.statvfs(path)
    return space.f_blocks * space.f_frsize
# Half of the memory, shared out among the four jobs that this host takes at once.
trial("shared-memory", lambda: size("/dev/shm") > memory / 2 / 4 + 4096)
trial("small-mounts", lambda: size("/") > 4 << 20 or size("/dev") > 64 << 10)
# On the disk, where it counts as the job's.
trial("temporary-files", lambda: os.stat("/tmp").st_dev != os.stat(".").st_dev)
def processes():
    children = []
    try:
        while len(children) < 20000:
            children.append(os.posix_spawn("/bin/sleep", ["sleep", "1000"], {}))
    except OSError:
        return False
    finally:
        for child in children: os.kill(child, 9)
    return True
import resource
resource.setrlimit(resource.RLIMIT_NPROC, (200, 200))
trial("processes", processes)
trial("raise-limit", lambda: resource.setrlimit(resource.RLIMIT_NPROC, (30000, 30000)) or True)
