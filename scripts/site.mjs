// Makes the output of cargo-leptos reproducible: `node scripts/site.mjs DIR`, where DIR contains site/ and hash.txt.
//
// wasm_split writes names in the order of a hash map, so the file that loads the lazy parts, its name, and all
// references to it differ between builds; and compressed files contain the time.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const dir = process.argv[2];
const pkg = join(dir, 'site/pkg');
const COMPRESSED = /\.(br|gz)$/;
/** Names with a hash of 22 characters, which is replaced by one of the same length, also within WebAssembly. */
const HASHED = /^(__wasm_split|__wasm_split_manifest)\.([\w-]{22})\.(js|json)$/;

/** Sorts the names within braces. */
function inOrder(text) {
  return text.replace(/\{((?:\s*[\w$]+,)+\s*)\}/g, (whole, names) => {
    const sorted = names.split(',').map((name) => name.trim()).filter(Boolean).sort();
    return `{ ${sorted.join(', ')}, }`;
  });
}

const sources = () => readdirSync(pkg).filter((name) => !COMPRESSED.test(name));

const renamed = new Map();
for (const name of sources()) {
  const [, stem, hash, kind] = HASHED.exec(name) ?? [];
  if (!stem) continue;
  const text = readFileSync(join(pkg, name), 'utf8');
  const ordered = kind === 'js' ? inOrder(text) : text;
  const now = createHash('md5').update(ordered).digest('base64url');
  writeFileSync(join(pkg, name), ordered);
  renameSync(join(pkg, name), join(pkg, `${stem}.${now}.${kind}`));
  for (const end of ['br', 'gz']) rmSync(join(pkg, `${name}.${end}`), { force: true });
  renamed.set(hash, now);
}
if (renamed.size !== 2) throw new Error(`${pkg} has ${renamed.size} files of wasm_split's, not 2`);

for (const path of [...sources().map((name) => join(pkg, name)), join(dir, 'hash.txt')]) {
  const before = readFileSync(path, 'latin1'); // one character per byte
  let after = before;
  for (const [hash, now] of renamed) after = after.replaceAll(hash, now);
  if (after !== before) writeFileSync(path, after, 'latin1');
}

const files = readdirSync(join(dir, 'site'), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
for (const entry of files.filter(({ name }) => !COMPRESSED.test(name))) {
  const path = join(entry.parentPath ?? entry.path, entry.name);
  const content = readFileSync(path);
  const hint = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  writeFileSync(`${path}.br`, brotliCompressSync(content, { params: hint }));
  writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
}
