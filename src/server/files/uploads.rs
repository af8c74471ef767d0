//! Files that arrive in pieces, until they are whole: a directory for each job, a file for each of its uploads. Its length is
//! the truth about what arrived. What a file is to be (where, how large, with which SHA-256) is in its name, so one that has
//! changed on its worker begins anew, and takes the place of what came of it before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use app::domain::ids::{Attempt, JobId};
use app::domain::time::Timestamp;
use bytes::Bytes;
use sha2::Digest;

use super::begun;
use super::hashes::{Hashes, whole};
use super::logs::{STRIPES, blocking, stripe};
use crate::tokens::hex;

/// The directory of what is not whole yet.
#[derive(Clone)]
pub struct Uploads {
    root: PathBuf,
    turns: Arc<Vec<Mutex<()>>>,
    hashes: Hashes,
}

/// What is to become of an upload.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Aim {
    /// Whose file it is.
    pub job: JobId,
    /// Which attempt made it.
    pub attempt: Attempt,
    /// Its path below the job's output.
    pub path: String,
    /// How many bytes it will have.
    pub size: u64,
    /// Their SHA-256, in lower-case hex.
    pub sha256: String,
}

/// An upload that somebody began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Whose file it is.
    pub job: JobId,
    /// Which attempt makes it.
    pub attempt: Attempt,
    /// When something of it came last.
    pub touched: Timestamp,
    file: PathBuf,
}

impl Uploads {
    /// Uploads below this directory, which is made if need be.
    pub fn open(root: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&root)?;
        Ok(Self { root, turns: Arc::new((0..STRIPES).map(|_| Mutex::default()).collect()), hashes: Hashes::default() })
    }

    /// How much of it is there.
    pub async fn received(&self, aim: &Aim) -> io::Result<u64> {
        let file = self.file(aim);
        blocking(move || match fs::metadata(file) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        })
        .await
    }

    /// Writes what is new of a piece, which may be on its way to the disk still. How much is there now; it is less than
    /// `offset` if something is missing before the piece.
    pub async fn append(&self, aim: &Aim, offset: u64, piece: Bytes) -> io::Result<u64> {
        let (this, path) = (self.clone(), self.file(aim));
        blocking(move || {
            let _turn = this.turn(&path);
            if !path.exists() {
                if offset > 0 {
                    return Ok(0);
                }
                begun::make_room(&path)?.iter().for_each(|dropped| this.hashes.forget(dropped));
            }
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            let size = file.metadata()?.len();
            let known = size.checked_sub(offset).and_then(|known| usize::try_from(known).ok());
            let new = known.and_then(|known| piece.get(known..)).unwrap_or_default();
            let hash = this.hashes.take(&path, size);
            file.write_all(new)?;
            if let Some(hash) = hash {
                this.hashes.put(path, hash.chain_update(new), size + new.len() as u64);
            }
            Ok(size + new.len() as u64)
        })
        .await
    }

    /// The SHA-256 of what is there, in hex. It is known without reading it all once more where all of it came to this server
    /// in this life.
    pub async fn digest(&self, aim: &Aim) -> io::Result<String> {
        let (this, path) = (self.clone(), self.file(aim));
        blocking(move || {
            let mut file = File::open(&path)?;
            let known = {
                let _turn = this.turn(&path);
                let size = file.metadata()?.len();
                this.hashes.take(&path, size).inspect(|hash| this.hashes.put(path, hash.clone(), size))
            };
            match known {
                Some(hash) => Ok(hex(&hash.finalize())),
                None => whole(&mut file),
            }
        })
        .await
    }

    fn turn(&self, path: &Path) -> MutexGuard<'_, ()> {
        self.turns[stripe(path)].lock().expect("no panic while it is held")
    }

    /// Waits until it is on disk; how much that is.
    pub async fn sync(&self, aim: &Aim) -> io::Result<u64> {
        let file = self.file(aim);
        blocking(move || match File::open(file) {
            Ok(file) => {
                file.sync_all()?;
                Ok(file.metadata()?.len())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        })
        .await
    }

    /// Drops it.
    pub async fn drop_one(&self, aim: &Aim) -> io::Result<()> {
        let (this, path) = (self.clone(), self.file(aim));
        blocking(move || {
            this.hashes.forget(&path);
            gone(fs::remove_file(path))
        })
        .await
    }

    /// Drops all of a job's.
    pub async fn remove(&self, job: &JobId) -> io::Result<()> {
        let directory = self.root.join(job.as_str());
        self.hashes.forget(&directory);
        blocking(move || gone(fs::remove_dir_all(directory))).await
    }

    /// All that were begun.
    pub async fn begun(&self) -> io::Result<Vec<Begun>> {
        let root = self.root.clone();
        blocking(move || {
            let mut begun = Vec::new();
            for directory in fs::read_dir(root)? {
                let directory = directory?;
                let Ok(job) = JobId::parse(&directory.file_name().to_string_lossy()) else { continue };
                let Ok(files) = fs::read_dir(directory.path()) else { continue };
                begun.extend(files.filter_map(|file| of(&job, &file.ok()?.path())));
            }
            Ok(begun)
        })
        .await
    }

    /// Drops one that nobody goes on with, and its job's directory if that was the last.
    pub async fn give_up(&self, begun: Begun) -> io::Result<()> {
        self.hashes.forget(&begun.file);
        blocking(move || {
            gone(fs::remove_file(&begun.file))?;
            match begun.file.parent().map(fs::remove_dir) {
                Some(Err(error)) if error.kind() != ErrorKind::DirectoryNotEmpty => gone(Err(error)),
                _ => Ok(()),
            }
        })
        .await
    }

    /// Where it is.
    pub fn file(&self, aim: &Aim) -> PathBuf {
        self.root.join(aim.job.as_str()).join(begun::name(aim))
    }
}

fn of(job: &JobId, file: &Path) -> Option<Begun> {
    let attempt = file.file_name()?.to_str()?.split_once('-')?.0.parse().ok()?;
    let touched = fs::metadata(file).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).map_or(0, millis);
    Some(Begun { job: job.clone(), attempt: Attempt(attempt), touched: Timestamp(touched), file: file.to_owned() })
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aim(path: &str) -> Aim {
        let job = JobId::new(Timestamp(0), [0; 10]);
        Aim { job, attempt: Attempt(3), path: path.to_owned(), size: 9, sha256: "00".repeat(32) }
    }

    #[tokio::test]
    async fn pieces_are_written_once_and_a_gap_is_not_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let uploads = Uploads::open(directory.path().join("uploads")).expect("made");
        let put =
            async |offset, text: &'static str| uploads.append(&aim("a"), offset, text.into()).await.expect("disk");
        assert_eq!(put(4, "late").await, 0);
        assert_eq!((put(0, "one ").await, put(2, "e two").await, put(0, "one ").await), (4, 7, 7));
        assert_eq!(uploads.sync(&aim("a")).await.expect("disk"), 7);
        assert_eq!(uploads.received(&Aim { size: 10, ..aim("a") }).await.expect("disk"), 0, "another file");
        let begun = uploads.begun().await.expect("disk");
        assert_eq!((begun.len(), &begun[0].job, begun[0].attempt), (1, &aim("a").job, Attempt(3)));
        uploads.give_up(begun[0].clone()).await.expect("disk");
        assert!(uploads.begun().await.expect("disk").is_empty());
        assert_eq!(fs::read_dir(directory.path().join("uploads")).expect("there").count(), 0);
        uploads.drop_one(&aim("a")).await.expect("gone already");
    }

    #[tokio::test]
    async fn a_digest_is_of_what_is_on_disk_whoever_wrote_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = || Uploads::open(directory.path().join("uploads")).expect("made");
        let of = |text: &str| hex(&sha2::Sha256::digest(text));
        let (first, aim) = (open(), aim("a"));
        first.append(&aim, 0, "one ".into()).await.expect("disk");
        first.append(&aim, 2, "e two".into()).await.expect("disk");
        assert_eq!(first.digest(&aim).await.expect("disk"), of("one two"));
        let second = open();
        assert_eq!(second.digest(&aim).await.expect("disk"), of("one two"), "after a start it is read");
        second.append(&aim, 7, " three".into()).await.expect("disk");
        assert_eq!(second.digest(&aim).await.expect("disk"), of("one two three"));
        assert_eq!(first.digest(&aim).await.expect("disk"), of("one two three"), "another server wrote");
        first.append(&aim, 13, "!".into()).await.expect("disk");
        assert_eq!(first.digest(&aim).await.expect("disk"), of("one two three!"));
        first.drop_one(&aim).await.expect("disk");
        assert!(first.digest(&aim).await.is_err());
    }

    #[tokio::test]
    async fn of_a_path_one_is_under_way_and_of_an_attempt_a_few() {
        let directory = tempfile::tempdir().expect("a directory");
        let uploads = Uploads::open(directory.path().join("uploads")).expect("made");
        let begin = async |aim: &Aim| uploads.append(aim, 0, "x".into()).await.expect("disk");
        let there = async |aim: &Aim| uploads.received(aim).await.expect("disk") > 0;
        let (before, changed) = (aim("a"), Aim { size: 10, ..aim("a") });
        let (other, next) = (aim("b"), Aim { attempt: Attempt(4), ..aim("a") });
        for one in [&before, &other, &next, &changed] {
            begin(one).await;
        }
        assert!(!there(&before).await, "it has changed on its worker");
        assert!(there(&changed).await && there(&other).await && there(&next).await);
        let old = fs::File::options().write(true).open(uploads.file(&other)).expect("there");
        old.set_modified(UNIX_EPOCH).expect("a file's time");
        for n in 2..begun::MOST {
            begin(&aim(&n.to_string())).await;
        }
        assert!(there(&other).await, "so many may be under way");
        begin(&aim("one more")).await;
        assert!(!there(&other).await, "the one with which nobody went on for longest");
        assert!(there(&changed).await && there(&next).await && there(&aim("one more")).await);
        assert_eq!(uploads.begun().await.expect("disk").len(), begun::MOST + 1);
    }
}
