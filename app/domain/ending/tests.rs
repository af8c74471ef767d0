//! Recorded ends, and what they say.

use super::*;

const CODE: End = End::Code(1);

/// A recorded log: its name and its bytes.
macro_rules! recorded {
    ($name:literal) => {
        ($name, &include_bytes!(concat!("recorded/", $name, ".txt"))[..])
    };
}

/// What is expected: the kind, how the headline begins, the rank, and how the block's last line begins.
type Expected = Option<(Kind, &'static str, Option<u32>, &'static str)>;

#[test]
fn recorded_ends_say_why() {
    use Kind::*;
    let out_of_memory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU ";
    let table: &[((&str, &[u8]), End, Expected)] = &[
        (recorded!("torchrun_oom"), CODE, Some((OutOfMemory, out_of_memory, Some(1), out_of_memory))),
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
            End::Code(247),
            Some((
                Killed,
                "['/opt/venv/bin/python', '-u', 'train.py', '--local_rank=1'] exits with return code = -9",
                None,
                "",
            )),
        ),
        (
            recorded!("plain_python"),
            CODE,
            Some((Exception, "IndexError: list index out of range", None, "IndexError: ")),
        ),
        (
            recorded!("oom_old_style"),
            CODE,
            Some((
                OutOfMemory,
                "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB",
                None,
                "RuntimeError: ",
            )),
        ),
        (recorded!("oom_new_style"), CODE, Some((OutOfMemory, out_of_memory, None, out_of_memory))),
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
            End::Signal(1),
            Some((Exception, "ValueError: the caption of 0007.txt is empty", Some(1), "ValueError: the caption")),
        ),
        (recorded!("torchrun_killed"), CODE, Some((Killed, "Signal 9 (SIGKILL) received by PID 4715", Some(1), ""))),
        (recorded!("plain_killed"), End::Signal(9), None),
        (recorded!("plain_python"), End::Signal(9), None),
        (
            recorded!("shell_killed"),
            End::Code(137),
            Some((Killed, "/work/train.sh: line 12:  4711 Killed                  python train.py", None, "")),
        ),
        (
            recorded!("segfault_faulthandler"),
            End::Signal(11),
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
            End::Code(127),
            Some((MissingFile, "/work/train.sh: line 3: accelerate: command not found", None, "")),
        ),
        (
            recorded!("wrong_option"),
            End::Code(2),
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
            End::Signal(2),
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
            Some((
                Exception,
                "RuntimeError: expected scalar type Half but found Float",
                None,
                "RuntimeError: expected",
            )),
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
            End::Signal(6),
            Some((
                Device,
                "RuntimeError: CUDA error: device-side assert triggered",
                None,
                "Compile with `TORCH_USE_CUDA_DSA`",
            )),
        ),
        (
            recorded!("cpp_terminate"),
            End::Code(134),
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
        (recorded!("nothing"), CODE, None),
        (
            recorded!("crlf_and_broken_bytes"),
            CODE,
            Some((Exception, "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff", None, "UnicodeDecodeError: ")),
        ),
        (
            recorded!("tee_prefix"),
            CODE,
            Some((
                Exception,
                "TypeError: unsupported operand type(s) for +: 'int' and 'NoneType'",
                Some(1),
                "TypeError: ",
            )),
        ),
        (recorded!("srun_prefix"), CODE, Some((Exception, "AssertionError", Some(1), "AssertionError"))),
        (recorded!("old_torchrun_without_prefix"), CODE, Some((OutOfMemory, out_of_memory, None, out_of_memory))),
        (recorded!("redirected_ranks"), CODE, Some((Exception, "LookupError: no cats", None, "LookupError: no cats"))),
        (
            recorded!("long_traceback"),
            CODE,
            Some((Exception, "RecursionError: maximum recursion depth exceeded", None, "RecursionError: ")),
        ),
    ];
    for ((name, log), end, expected) in table {
        let log = String::from_utf8_lossy(log);
        let found = cause(&log, *end);
        let Some((kind, headline, rank, last)) = expected else {
            assert_eq!(found, None, "{name}");
            continue;
        };
        let found = found.unwrap_or_else(|| panic!("{name}: nothing was found"));
        assert_eq!((found.kind, found.rank), (*kind, *rank), "{name}: {found:#?}");
        assert!(found.headline.starts_with(headline), "{name}: {found:#?}");
        let last_line = found.block.lines().last().unwrap_or_default();
        assert!(last_line.starts_with(last) && last.is_empty() == found.block.is_empty(), "{name}: {found:#?}");
        is_shown_well(name, &log, &found);
    }
}

/// What holds of every cause: it is short, has its own shape, and its line is there.
fn is_shown_well(name: &str, log: &str, found: &Cause) {
    assert!(found.headline.chars().count() <= 301 && !found.headline.contains('\n'), "{name}: {found:#?}");
    assert!(found.block.lines().count() <= 40 && found.block.chars().count() <= 3_600, "{name}: {found:#?}");
    assert!(
        !found.block.contains("Sending process") && !found.block.contains("ChildFailedError"),
        "{name}: {found:#?}"
    );
    if found.block.starts_with("Traceback") {
        assert!(
            found.block.lines().nth(1).is_some_and(|line| line.starts_with("  File \"") || line == "  …"),
            "{name}: {found:#?}"
        );
    }
    let line = log.split('\n').nth(found.line).unwrap_or_default();
    let line = crate::domain::log_text::plain(line).into_owned();
    let start: String = found.headline.chars().take(20).collect();
    assert!(line.contains(&start), "{name}: line {} is {line:?}", found.line);
}

#[test]
fn a_block_keeps_its_head_and_its_end() {
    let log = String::from_utf8_lossy(recorded!("long_traceback").1).into_owned();
    let found = cause(&log, CODE).expect("a cause");
    let lines: Vec<&str> = found.block.lines().collect();
    assert_eq!((lines[0], lines[1]), ("Traceback (most recent call last):", "  …"));
    assert!(lines[2].starts_with("  File"), "{}", found.block);
    let chained = String::from_utf8_lossy(recorded!("direct_cause").1).into_owned();
    let found = cause(&chained, CODE).expect("a cause");
    assert!(
        found.block.contains("PermissionError: [Errno 13]") && found.block.contains("\n\nThe above exception was"),
        "{}",
        found.block
    );
    assert_eq!(cut::headline(&"ab ".repeat(200)).chars().count(), 300);
    assert_eq!(cut::headline(&"ü".repeat(400)), "ü".repeat(300) + "…");
    assert!(cut::block(&vec!["ü".repeat(900); 90]).chars().count() <= 3_600);
    assert_eq!(cut::block(&[]), "");
}

#[test]
fn launchers_words_are_not_the_trainers() {
    let log = String::from_utf8_lossy(recorded!("torchrun_killed").1).into_owned();
    let last: Vec<String> = own_lines(&log).into_iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(last.last().map(String::as_str), Some("step 14/1000 loss 0.886 lr 1e-4"));
    let log = String::from_utf8_lossy(recorded!("deepspeed_killed").1).into_owned();
    let last: Vec<String> = own_lines(&log).into_iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(last.last().map(String::as_str), Some("step 4/1000 loss 0.896 lr 1e-4"));
}

/// Pieces of which logs are made.
const PIECES: [&str; 20] = [
    "Traceback (most recent call last):",
    "  File \"a.py\", line 1, in x",
    "ValueError: x",
    "[rank1]: ",
    "[rank",
    "3: ",
    "\n",
    "\r",
    "\r\n",
    "During handling of the above exception, another exception occurred:\n",
    "Original ",
    "usage: x\n",
    "x: error: y\n",
    "Root Cause (first observed failure):\n  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 1)\n",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "=====\n",
    "Fatal Python error: x\n\n",
    "terminate called\n  what():  ü\n",
    "\u{fffd}é\u{1b}[31m",
    " 3%|█ | 1/2 [00:01, 1it/s]",
];

proptest::proptest! {
    #[test]
    fn no_log_is_too_strange(parts in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..60), code in -300..300) {
        let log = parts.concat();
        for end in [End::Code(code), End::Signal(code)] {
            if let Some(found) = cause(&log, end) {
                proptest::prop_assert!(found.line < log.split('\n').count());
                proptest::prop_assert!(found.block.chars().count() <= 3_600 && found.block.lines().count() <= 40);
            }
        }
    }

    #[test]
    fn no_text_is_too_strange(log in "\\PC{0,200}", cut in 0..200_usize) {
        let cut = (0..=cut.min(log.len())).rev().find(|at| log.is_char_boundary(*at)).unwrap_or(0);
        let _ = (cause(&log[cut..], CODE), own_lines(&log));
    }
}

#[test]
fn of_a_flood_of_tracebacks_the_last_is_why() {
    let one = "Traceback (most recent call last):\n  File \"a\", line 1\nValueError: x\nstep\n";
    let log = one.repeat(256 * 1024 / one.len());
    let found = cause(&log, CODE).expect("the last one");
    assert_eq!(found.line, log.lines().count() - 2);
}
