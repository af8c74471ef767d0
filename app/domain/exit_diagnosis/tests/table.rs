//! The recorded exits and their expected causes.

use super::CODE;
use crate::domain::exit_diagnosis::CauseKind::{
    self, Access, Configuration, Crash, Device, DiskFull, Exception, Interrupted, Killed, Logged, MissingFile,
    MissingModule, NotANumber, OutOfMemory, Timeout,
};
use crate::domain::exit_diagnosis::ExitOutcome;

/// A recorded log: its name and its bytes.
macro_rules! recorded {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../recorded/", $name, ".txt")) as &[u8])
    };
}

/// The expected kind, start of the headline, rank, and start of the block's last line.
pub type Expected = Option<(CauseKind, &'static str, Option<u32>, &'static str)>;

/// A log, how its trainer exited, and the expected cause.
pub type Recorded = ((&'static str, &'static [u8]), ExitOutcome, Expected);

const OUT_OF_MEMORY: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU ";

pub const TABLE: &[Recorded] = &[
    (recorded!("torchrun_oom"), CODE, Some((OutOfMemory, OUT_OF_MEMORY, Some(1), OUT_OF_MEMORY))),
    (
        recorded!("torchrun_four_ranks"),
        CODE,
        Some((
            Exception,
            "ValueError: image 0042.png has 4 channels, the model takes 3",
            Some(2),
            "ValueError: image 0042",
        )),
    ),
    (
        recorded!("accelerate_called_process"),
        CODE,
        Some((Exception, "KeyError: 'vae_path'", None, "KeyError: 'vae_path'")),
    ),
    (
        recorded!("accelerate_config"),
        CODE,
        Some((Configuration, "ValueError: You can only use one of `--cpu`", None, "ValueError: You")),
    ),
    (
        recorded!("accelerate_killed"),
        CODE,
        Some((
            Killed,
            "Command '['/opt/venv/bin/python', 'train.py', '--config', 'config.json']' died with <Signals.SIGKILL: 9>.",
            None,
            "",
        )),
    ),
    (
        recorded!("deepspeed"),
        CODE,
        Some((Exception, "RuntimeError: The size of tensor a (64) must match", Some(1), "RuntimeError: The size")),
    ),
    (
        recorded!("deepspeed_killed"),
        ExitOutcome::Code(247),
        Some((
            Killed,
            "['/opt/venv/bin/python', '-u', 'train.py', '--local_rank=1'] exits with return code = -9",
            None,
            "",
        )),
    ),
    (recorded!("plain_python"), CODE, Some((Exception, "IndexError: list index out of range", None, "IndexError: "))),
    (
        recorded!("oom_old_style"),
        CODE,
        Some((OutOfMemory, "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB", None, "RuntimeError: ")),
    ),
    (recorded!("oom_new_style"), CODE, Some((OutOfMemory, OUT_OF_MEMORY, None, OUT_OF_MEMORY))),
    (
        recorded!("oom_hip"),
        CODE,
        Some((OutOfMemory, "torch.OutOfMemoryError: HIP out of memory.", None, "torch.OutOfMemoryError: HIP")),
    ),
    (
        recorded!("nccl_watchdog"),
        CODE,
        Some((
            Timeout,
            "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1234",
            Some(0),
            "[E1124 00:47:10.3",
        )),
    ),
    (
        recorded!("nccl_peer_gone"),
        ExitOutcome::Signal(1),
        Some((Exception, "ValueError: the caption of 0007.txt is empty", Some(1), "ValueError: the caption")),
    ),
    (recorded!("torchrun_killed"), CODE, Some((Killed, "Signal 9 (SIGKILL) received by PID 4715", Some(1), ""))),
    (recorded!("plain_killed"), ExitOutcome::Signal(9), None),
    (recorded!("plain_python"), ExitOutcome::Signal(9), None),
    (
        recorded!("shell_killed"),
        ExitOutcome::Code(137),
        Some((Killed, "/work/train.sh: line 12:  4711 Killed                  python train.py", None, "")),
    ),
    (
        recorded!("segfault_faulthandler"),
        ExitOutcome::Signal(11),
        Some((Crash, "Fatal Python error: Segmentation fault", None, "Extension modules: numpy")),
    ),
    (recorded!("torchrun_segfault"), CODE, Some((Crash, "Signal 11 (SIGSEGV) received by PID 4714", Some(0), ""))),
    (
        recorded!("bus_error_data_loader"),
        CODE,
        Some((
            Crash,
            "RuntimeError: DataLoader worker (pid 42) is killed by signal: Bus error. It is possible",
            None,
            "RuntimeError: DataLoader worker (pid(s) 42)",
        )),
    ),
    (
        recorded!("data_loader_original"),
        CODE,
        Some((
            Exception,
            "PIL.UnidentifiedImageError: cannot identify image file '/data/cats/0099.jpg'",
            None,
            "PIL.Unidentified",
        )),
    ),
    (
        recorded!("missing_module"),
        CODE,
        Some((MissingModule, "ModuleNotFoundError: No module named 'diffusers'", None, "ModuleNot")),
    ),
    (
        recorded!("missing_module_accelerate"),
        CODE,
        Some((MissingModule, "ModuleNotFoundError: No module named 'bitsandbytes'", None, "ModuleNot")),
    ),
    (
        recorded!("no_module_by_name"),
        CODE,
        Some((MissingModule, "/usr/bin/python3: No module named 'simpletuner'", None, "")),
    ),
    (
        recorded!("no_such_command"),
        ExitOutcome::Code(127),
        Some((MissingFile, "/work/train.sh: line 3: accelerate: command not found", None, "")),
    ),
    (
        recorded!("wrong_option"),
        ExitOutcome::Code(2),
        Some((
            Configuration,
            "train.py: error: unrecognized arguments: --learnig-rate 1e-4",
            None,
            "train.py: error: ",
        )),
    ),
    (
        recorded!("wrong_value"),
        CODE,
        Some((
            Configuration,
            "ValueError: config.json: resolution must be a multiple of 64, got 1000",
            None,
            "ValueError: ",
        )),
    ),
    (
        recorded!("missing_file"),
        CODE,
        Some((
            MissingFile,
            "FileNotFoundError: [Errno 2] No such file or directory: '/data/cats/captions.json'",
            None,
            "FileNot",
        )),
    ),
    (
        recorded!("broken_json"),
        CODE,
        Some((
            Configuration,
            "json.decoder.JSONDecodeError: Expecting ',' delimiter: line 12 column 5 (char 301)",
            None,
            "json.decoder.",
        )),
    ),
    (
        recorded!("gated_repository"),
        CODE,
        Some((
            Access,
            "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-6743-abc;def)",
            None,
            "huggingface_hub.errors.",
        )),
    ),
    (
        recorded!("disk_full"),
        CODE,
        Some((
            DiskFull,
            "OSError: [Errno 28] No space left on device: '/work/output/checkpoint-500/optimizer.bin'",
            None,
            "OSError: ",
        )),
    ),
    (
        recorded!("loss_is_nan"),
        CODE,
        Some((
            NotANumber,
            "2024-11-24 00:47:13,123 - trainer - ERROR - The loss is NaN at step 21. Training stops.",
            None,
            "2024-11-24 00:47:13,123",
        )),
    ),
    (
        recorded!("loss_is_nan_raised"),
        CODE,
        Some((NotANumber, "FloatingPointError: loss became NaN at step 21", None, "FloatingPointError: ")),
    ),
    (
        recorded!("keyboard_interrupt"),
        ExitOutcome::Signal(2),
        Some((Interrupted, "KeyboardInterrupt", None, "KeyboardInterrupt")),
    ),
    (recorded!("torchrun_sigint"), CODE, Some((Interrupted, "KeyboardInterrupt", Some(0), "KeyboardInterrupt"))),
    (
        recorded!("during_handling"),
        CODE,
        Some((Exception, "RuntimeError: batch 12 of cats has no prompts", None, "RuntimeError: batch")),
    ),
    (
        recorded!("direct_cause"),
        CODE,
        Some((Exception, "dataset.Unreadable: the data set cats cannot be read", None, "dataset.Unreadable: ")),
    ),
    (
        recorded!("caught_long_before"),
        CODE,
        Some((Exception, "ZeroDivisionError: division by zero", None, "ZeroDivisionError: ")),
    ),
    (recorded!("caught_and_nothing_else"), CODE, None),
    (
        recorded!("bars_and_colours"),
        CODE,
        Some((Exception, "RuntimeError: expected scalar type Half but found Float", None, "RuntimeError: expected")),
    ),
    (
        recorded!("message_of_several_lines"),
        CODE,
        Some((
            Exception,
            "RuntimeError: Error(s) in loading state_dict for UNet:",
            None,
            "\tsize mismatch for conv_out.weight",
        )),
    ),
    (
        recorded!("device_assert"),
        ExitOutcome::Signal(6),
        Some((
            Device,
            "RuntimeError: CUDA error: device-side assert triggered",
            None,
            "Compile with `TORCH_USE_CUDA_DSA`",
        )),
    ),
    (
        recorded!("cpp_terminate"),
        ExitOutcome::Code(134),
        Some((
            Crash,
            "terminate called after throwing an instance of 'std::runtime_error': file in bad state: ",
            None,
            "Aborted (core dumped)",
        )),
    ),
    (
        recorded!("only_error_lines"),
        CODE,
        Some((
            Logged,
            "2024-11-24 00:47:01,100 [ERROR] No data set is left to train on, exiting.",
            None,
            "2024-11-24 00:47:01,100",
        )),
    ),
    (recorded!("event_alone"), CODE, Some((Logged, "Training failed: no data set is left to train on", None, ""))),
    (
        recorded!("events_and_log"),
        CODE,
        Some((Logged, "GPU fault: thermal on GPU 1; action: stopped", None, "[event] ERROR GPU fault: thermal")),
    ),
    (recorded!("nothing"), CODE, None),
    (
        recorded!("crlf_and_broken_bytes"),
        CODE,
        Some((Exception, "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff", None, "UnicodeDecodeError: ")),
    ),
    (
        recorded!("tee_prefix"),
        CODE,
        Some((Exception, "TypeError: unsupported operand type(s) for +: 'int' and 'NoneType'", Some(1), "TypeError: ")),
    ),
    (recorded!("srun_prefix"), CODE, Some((Exception, "AssertionError", Some(1), "AssertionError"))),
    (recorded!("old_torchrun_without_prefix"), CODE, Some((OutOfMemory, OUT_OF_MEMORY, None, OUT_OF_MEMORY))),
    (recorded!("redirected_ranks"), CODE, Some((Exception, "LookupError: no cats", None, "LookupError: no cats"))),
    (
        recorded!("long_traceback"),
        CODE,
        Some((Exception, "RecursionError: maximum recursion depth exceeded", None, "RecursionError: ")),
    ),
    (
        recorded!("segfault_plain"),
        ExitOutcome::Signal(11),
        Some((Crash, "Fatal Python error: Segmentation fault", None, "  File \"/work/a.py\", line 4 in <module>")),
    ),
    (recorded!("process_pool"), CODE, Some((Exception, "ValueError: bad image 1", None, "ValueError: bad image 1"))),
    (recorded!("exception_group"), CODE, Some((Exception, "ValueError: 0", None, "  +--"))),
    (recorded!("thread"), ExitOutcome::Code(3), Some((Exception, "KeyError: 'thread'", None, "KeyError: 'thread'"))),
    (recorded!("syntax_error"), CODE, Some((Exception, "SyntaxError: invalid syntax", None, ""))),
    (
        recorded!("wrapped_option"),
        CODE,
        Some((Configuration, "train.py: error: unrecognized arguments: --stepz", None, "train.py: error: ")),
    ),
];
