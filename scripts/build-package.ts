import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export type Manifest = Record<string, unknown>;

interface PackageBuild {
  /** Folder of the workspace. */
  home: string;
  /** The part of the core that the package uses: where its sources are, and what the published file imports. */
  core: { source: string; published: string };
  /** What the published manifest has beside name, version, description, license, type and the peer `troupe`. */
  manifest: (own: Manifest) => Manifest;
}

const ROOT = path.dirname(import.meta.dirname);

/**
 * Writes `dist` of a workspace, the folder that is published. In the repository a package runs from its sources, and
 * `src/troupe.ts` imports the core by a relative path; in `dist` that file imports the published package. The workspace itself
 * is private.
 */
export function buildPackage({ home, core, manifest }: PackageBuild): void {
  const [out, dist] = [path.join(home, 'build'), path.join(home, 'dist')];
  for (const folder of [out, dist]) rmSync(folder, { recursive: true, force: true });
  const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc');
  // Checked with everything else: `npm run types`.
  const args = [tsc, '--noCheck', '-p', path.join(home, 'tsconfig.build.json')];
  if (spawnSync(process.execPath, args, { stdio: 'inherit' }).status !== 0) process.exit(1);
  cpSync(path.join(out, 'packages', path.basename(home), 'src'), dist, { recursive: true });
  rmSync(out, { recursive: true });
  for (const name of readdirSync(dist)) publishImports(path.join(dist, name), core);
  for (const file of [path.join(home, 'README.md'), path.join(ROOT, 'LICENSE')])
    cpSync(file, path.join(dist, path.basename(file)));
  const published = publishedManifest(manifestOf(home), manifest);
  writeFileSync(path.join(dist, 'package.json'), `${JSON.stringify(published, null, 2)}\n`);
}

function publishImports(file: string, { source, published }: PackageBuild['core']): void {
  const name = path.basename(file);
  let text = readFileSync(file, 'utf8');
  if (name.startsWith('troupe.'))
    for (const suffix of ['js', 'ts'])
      for (const quote of [`'`, `"`])
        text = text.replaceAll(
          `${quote}../../../src/${source}.${suffix}${quote}`,
          `${quote}${published}${quote}`,
        );
  if (text.includes('../src/')) throw new Error(`${name} still imports the sources of the core`);
  writeFileSync(file, text);
}

function publishedManifest(own: Manifest, more: PackageBuild['manifest']): Manifest {
  const { name, version, description, license, type } = own;
  const { peerDependencies, ...rest } = more(own);
  const troupe = `^${String(manifestOf(ROOT)['version'])}`;
  return {
    name,
    version,
    description,
    license,
    type,
    ...rest,
    peerDependencies: { ...(peerDependencies as object | undefined), troupe },
  };
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as Manifest;
}
