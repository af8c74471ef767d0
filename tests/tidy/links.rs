//! Links of the documents lead to pages and headings that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::documents::in_directory;
use super::root;

/// Every document that a reader is sent to.
fn documents() -> Vec<PathBuf> {
    ["", "docs", "docs/decisions", "docs/screens", "examples"].into_iter().flat_map(in_directory).collect()
}

/// Where its links lead to, outside of code.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split("](").skip(1)).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// What a heading is called in an address.
fn anchor(heading: &str) -> String {
    let slug = heading.to_lowercase().replace(' ', "-");
    slug.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings.map(anchor).collect()
}

/// Why a link leads nowhere, if so.
fn broken(document: &Path, text: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let page = if path.is_empty() { document.to_owned() } else { document.parent()?.join(path) };
    if !page.exists() {
        return Some(format!("{}: {target}", document.display()));
    }
    let content = if path.is_empty() { text.to_owned() } else { fs::read_to_string(&page).unwrap_or_default() };
    let found = heading.is_empty() || anchors(&content).contains(heading);
    (!found).then(|| format!("{}: {target}: no such heading", document.display()))
}

#[test]
fn readme_links_to_every_document() {
    let readme = fs::read_to_string(root().join("README.md")).expect("a document");
    let linked: BTreeSet<PathBuf> = targets(&readme).map(|target| root().join(target)).collect();
    let missing: Vec<PathBuf> = in_directory("docs").into_iter().filter(|page| !linked.contains(page)).collect();
    assert!(missing.is_empty(), "README.md has no link to {missing:#?}");
}

/// The pages of the product document's list “See Also”, and where this repository has their subject.
const SEE_ALSO: [(&str, &str, &str); 5] = [
    ("Enterprise Guide: quotas", "docs/QUEUE.md", "## Shares"),
    ("Job Queue", "docs/QUEUE.md", "**Order.** First the class"),
    ("Cloud Training", "docs/WORKER.md", "**On rented hosts.**"),
    ("API Tutorial", "README.md", "### 4. Submit a job"),
    ("Audit Guide", "docs/AUDIT.md", "## Reading"),
];

#[test]
fn see_also_of_the_product_document_has_replacements() {
    for (title, page, words) in SEE_ALSO {
        let text = fs::read_to_string(root().join(page)).expect("a document");
        assert!(text.contains(words), "{title}: {page} has no {words:?}");
    }
}

#[test]
fn documents_link_to_what_exists() {
    let mut broken_links = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document");
        broken_links.extend(targets(&text).filter_map(|target| broken(&document, &text, target)));
    }
    assert!(broken_links.is_empty(), "{broken_links:#?}");
    let page = root().join("docs/QUEUE.md");
    assert!(broken(&page, "", "NOWHERE.md").is_some() && broken(&page, "# A b", "#a-c").is_some());
    assert_eq!(broken(&page, "## What happens when …", "#what-happens-when-"), None);
}
