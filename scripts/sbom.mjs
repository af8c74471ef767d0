// Removes from CycloneDX files what differs between builds of the same sources: random serial numbers, the time, and
// local paths. `node scripts/sbom.mjs ROOT FILE...`
import { readFileSync, writeFileSync } from 'node:fs';

const [root, ...files] = process.argv.slice(2);
const time = new Date(Number(process.env.SOURCE_DATE_EPOCH ?? 0) * 1000).toISOString();

for (const file of files) {
    const bom = JSON.parse(readFileSync(file, 'utf8').replaceAll(root, '.'));
    if (bom.bomFormat !== 'CycloneDX' || !bom.components?.length) throw new Error(`${file} lists nothing`);
    delete bom.serialNumber;
    bom.metadata.timestamp = time;
    bom.components.sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1));
    bom.dependencies?.sort((a, b) => (a.ref < b.ref ? -1 : 1));
    writeFileSync(file, `${JSON.stringify(bom, null, 2)}\n`);
    console.log(`${file}: ${bom.components.length} components`);
}
