# Targets outside the sandboxes, of one user. Removes them when its standard input is closed.
import ctypes, os, socket, sys
libc = ctypes.CDLL(None)
socket_path, name, user = sys.argv[1], sys.argv[2], int(sys.argv[3])
queue = name.encode()
abstract, service = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
service.bind(socket_path)
os.chmod(socket_path, 0o666)
if user != os.getuid():
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
abstract.bind("\0" + name)
abstract.listen(), service.listen()
# Removed with the last process that uses it.
memory = libc.shmget(0, 4096, 0o1600)
libc.shmat(memory, None, 0)
libc.shmctl(memory, 0, None)
libc.syscall(240, queue, os.O_CREAT | os.O_RDONLY, 0o600, None)
semaphore = "/dev/shm/sem." + name
with open(semaphore, "w") as file: file.write("x")
controller, terminal = os.openpty()
print(os.ttyname(terminal), flush=True)
sys.stdin.read()
os.unlink(semaphore)
libc.syscall(241, queue)
