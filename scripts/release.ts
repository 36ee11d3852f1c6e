import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { manifestOf, packPackage, workspaces } from './build-package.ts';
import { installTarball, packTroupe, ROOT, run } from './packed.ts';
import { openScratch } from '../test/services/scratch.ts';

/**
 * `npm run release`: packs `troupe` and every workspace, installs all of it together in an empty project, imports every entry point, checks the
 * types of every block of the packages' READMEs, and publishes the tarballs. `--dry-run` publishes nothing.
 */
interface Packed {
  workspace: string;
  tarball: string;
}

/** Packs every workspace beside the tarball of `troupe`, and tries them in `folder`. */
export async function packAll(folder: string, troupe: string): Promise<Packed[]> {
  const packed: Packed[] = [];
  for (const workspace of workspaces())
    packed.push({ workspace, tarball: await packPackage(workspace, folder) });
  for (const { workspace, tarball } of packed) {
    const { name, peerDependencies = {} } = publishedIn(workspace);
    if ('troupe' in peerDependencies) continue;
    const alone = projectIn(folder, name.replaceAll(/\W/g, '-'));
    tryPackages(alone, [tarball], [workspace]);
    if (isInstalled(alone, 'troupe')) throw new Error(`${name} installs troupe`);
    console.log(`release: ${name} works without troupe`);
  }
  tryPackages(
    projectIn(folder, 'together'),
    [troupe, ...packed.map(({ tarball }) => tarball)],
    packed.map(({ workspace }) => workspace),
  );
  console.log(`release: troupe and ${packed.length} packages work together from their tarballs`);
  return packed;
}

function projectIn(folder: string, name: string): string {
  const project = path.join(folder, name);
  mkdirSync(project);
  return project;
}

function isInstalled(project: string, name: string): boolean {
  const { packages } = JSON.parse(readFileSync(path.join(project, 'package-lock.json'), 'utf8')) as {
    packages: object;
  };
  return `node_modules/${name}` in packages;
}

interface Published {
  name: string;
  exports?: Record<string, unknown>;
  peerDependencies?: Record<string, string>;
}

function publishedIn(workspace: string): Published {
  const dist = manifestOf(workspace)['private'] ? `${workspace}/dist` : workspace;
  return manifestOf(dist) as unknown as Published;
}

function tryPackages(project: string, tarballs: string[], tried: string[]): void {
  const manifests = tried.map(publishedIn);
  const peers = manifests.flatMap(({ peerDependencies = {} }) =>
    Object.entries(peerDependencies).flatMap(([name, range]) =>
      name === 'troupe' ? [] : [`${name}@${range}`],
    ),
  );
  installTarball(project, ...tarballs, ...new Set(peers));
  const entries = manifests.flatMap(({ name, exports = {} }) =>
    Object.keys(exports).flatMap((entry) => (entry.endsWith('.json') ? [] : [name + entry.slice(1)])),
  );
  for (const entry of entries) {
    const source = `if (Object.keys(await import('${entry}')).length === 0) throw new Error('${entry} exports nothing');`;
    run(project, process.execPath, ['--input-type=module', '--eval', source]);
  }
  const blocks = tried.flatMap((workspace) => {
    const readme = readFileSync(path.join(ROOT, workspace, 'README.md'), 'utf8');
    return [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text = ''], index) => {
      const name = `${path.basename(workspace)}-${index}.mts`;
      writeFileSync(path.join(project, name), text);
      return name;
    });
  });
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2024'];
  const types = ['--lib', 'es2024,esnext.disposable,dom', '--types', 'node'];
  const roots = ['--typeRoots', path.join(ROOT, 'node_modules/@types')];
  if (blocks.length > 0) run(project, 'tsc', [...options, ...types, ...roots, ...blocks]);
  console.log(
    `release: ${entries.length} entry points load, ${blocks.length} blocks of READMEs compile (${manifests.map(({ name }) => name).join(', ')})`,
  );
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { 'dry-run': { type: 'boolean' } } });
  using scratch = openScratch();
  const troupe = packTroupe(scratch.folder);
  const packed = await packAll(scratch.folder, troupe);
  for (const tarball of [troupe, ...packed.map((each) => each.tarball)]) {
    if (values['dry-run']) console.log(`release: would publish ${path.basename(tarball)}`);
    else console.log(run(ROOT, 'npm', ['publish', tarball, '--access', 'public']));
  }
}
