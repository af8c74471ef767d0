#![no_main]

use std::path::Path;

use simpletuner_fuzz::checks::bodies::{check, write_examples};

libfuzzer_sys::fuzz_target!(
    init: {
        // The first directory is the corpus of earlier runs.
        let corpus = std::env::args().skip(1).find(|argument| Path::new(argument).is_dir());
        if let Some(corpus) = corpus {
            write_examples(Path::new(&corpus)).expect("a writable corpus");
        }
    },
    |data: &[u8]| check(data)
);
