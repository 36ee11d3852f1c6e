import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { rolldown } from 'rolldown';
import { dts } from 'rolldown-plugin-dts';
import { ROOT, run } from './packed.ts';

type Manifest = Record<string, unknown> & { name: string; exports?: Record<string, string> };

/** What a package may import in its seams, by its sources. */
const ENTRY_POINTS: Readonly<Record<string, string>> = {
  'src/http/api/index': 'troupe/http',
  'src/index': 'troupe',
  'src/library/integrations/index': 'troupe/integrations',
  'testing/src/index': '@troupe/testing',
};

/** Folders of the workspaces, from the root. */
export function workspaces(): string[] {
  return readdirSync(path.join(ROOT, 'packages')).map((name) => `packages/${name}`);
}

export function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(path.join(ROOT, folder, 'package.json'), 'utf8')) as Manifest;
}

/**
 * Writes what is published of a workspace, and returns its folder. In the repository a package runs from its sources, and its
 * `src/troupe.ts` imports the core by a relative path; in `dist` that file imports the published package. What a package imports of
 * the core that is no entry point of `troupe` is bundled into it: it installs without `troupe`.
 */
export async function buildPackage(workspace: string): Promise<string> {
  const home = path.join(ROOT, workspace);
  // Plain JavaScript is published as it stands.
  if (!existsSync(path.join(home, 'src'))) return home;
  const [out, dist] = [path.join(home, 'build'), path.join(home, 'dist')];
  for (const folder of [out, dist]) rmSync(folder, { recursive: true, force: true });
  const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc');
  // Checked with everything else: `npm run types`.
  const args = [tsc, '--noCheck', '-p', path.join(home, 'tsconfig.build.json')];
  if (spawnSync(process.execPath, args, { stdio: 'inherit' }).status !== 0)
    throw new Error(`${workspace} does not compile`);
  const compiled = path.join(out, workspace, 'src');
  const isAlone = !bindSeam(compiled);
  if (isAlone) await bundle(workspace, compiled, dist);
  else cpSync(compiled, dist, { recursive: true });
  rmSync(out, { recursive: true });
  for (const file of [path.join(home, 'README.md'), path.join(ROOT, 'LICENSE')])
    cpSync(file, path.join(dist, path.basename(file)));
  writeFileSync(
    path.join(dist, 'package.json'),
    `${JSON.stringify(publishedManifest(workspace, isAlone), null, 2)}\n`,
  );
  return dist;
}

/** False: the seam imports something that `troupe` does not export. */
function bindSeam(compiled: string): boolean {
  for (const name of ['troupe.js', 'troupe.d.ts', 'http.js', 'http.d.ts']) {
    const file = path.join(compiled, name);
    if (!existsSync(file)) continue;
    const text = readFileSync(file, 'utf8').replaceAll(
      /(['"])(?:\.\.\/)+((?:testing\/)?src\/[\w./-]+)\.[jt]s\1/g,
      (found, quote: string, source: string) => {
        const entry = ENTRY_POINTS[source];
        return entry ? `${quote}${entry}${quote}` : found;
      },
    );
    if (text.includes('../src/')) return false;
    writeFileSync(file, text);
  }
  return true;
}

async function bundle(workspace: string, compiled: string, dist: string): Promise<void> {
  const names = Object.values(manifestOf(workspace).exports ?? {})
    .filter((target) => target.endsWith('.ts'))
    .map((target) => path.basename(target, '.ts'));
  for (const suffix of ['js', 'd.ts']) {
    const plugins =
      suffix === 'js' ? [] : [dts({ dtsInput: true, emitDtsOnly: true, generator: 'oxc', tsconfig: false })];
    const bundled = await rolldown({
      input: Object.fromEntries(names.map((name) => [name, path.join(compiled, `${name}.${suffix}`)])),
      plugins,
      external: /^[^./]/,
    });
    await bundled.write({ dir: dist, format: 'es' });
  }
  // Types of routes name the context of the server, which no client sees.
  for (const name of readdirSync(dist).filter((each) => each.endsWith('.d.ts'))) {
    const file = path.join(dist, name);
    const text = readFileSync(file, 'utf8').replaceAll(
      /^import \{ Context \} from ["']hono["'];$/gm,
      'type Context = unknown;',
    );
    writeFileSync(file, text);
  }
}

function publishedManifest(workspace: string, isAlone: boolean): Manifest {
  const { private: _private, scripts: _scripts, devDependencies: _dev, ...own } = manifestOf(workspace);
  const exports = Object.entries(own.exports ?? {}).map(([name, target]) => {
    const built = target.replace('./src/', './').replace(/\.ts$/, '');
    return [name, target.endsWith('.ts') ? { types: `${built}.d.ts`, default: `${built}.js` } : target];
  });
  const peers = { ...(own['peerDependencies'] as object | undefined) };
  const troupe = isAlone ? {} : { troupe: `^${String(manifestOf('.')['version'])}` };
  return {
    ...own,
    exports: Object.fromEntries(exports) as Record<string, string>,
    peerDependencies: { ...peers, ...troupe },
  };
}

/** Packs what is published of a workspace into `folder`. Returns the path of the tarball. */
export async function packPackage(workspace: string, folder: string): Promise<string> {
  const dist = await buildPackage(workspace);
  const [{ filename } = { filename: '' }] = JSON.parse(
    run(dist, 'npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]),
  ) as { filename: string }[];
  return path.join(folder, filename);
}

if (import.meta.main)
  for (const workspace of process.argv.slice(2))
    console.log(await buildPackage(workspace.replace(/\/$/, '')));
