import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Writes `dist`, the folder that is published: `npm run build -w @troupe/client && npm publish packages/client/dist`. In the
 * repository the package runs from its sources, and `src/troupe.ts` imports the core by a relative path; in `dist` that
 * file imports `troupe/client`. The workspace itself is private.
 */
const HOME = import.meta.dirname;
const ROOT = path.join(HOME, '../..');
const [OUT, DIST] = [path.join(HOME, 'build'), path.join(HOME, 'dist')];
const CORE = /(['"])(?:\.\.\/)+src\/http\/client\.(?:js|ts)\1/g;

for (const folder of [OUT, DIST]) rmSync(folder, { recursive: true, force: true });
const { status } = spawnSync(process.execPath, [tsc(), '-p', path.join(HOME, 'tsconfig.build.json')], {
  stdio: 'inherit',
});
if (status !== 0) process.exit(1);
cpSync(path.join(OUT, 'packages/client/src'), DIST, { recursive: true });
rmSync(OUT, { recursive: true });
for (const name of readdirSync(DIST)) {
  const file = path.join(DIST, name);
  const text = readFileSync(file, 'utf8');
  const built = name.startsWith('troupe.') ? text.replace(CORE, '$1troupe/client$1') : text;
  if (/\.\.\/src\//.test(built)) throw new Error(`${name} still imports the sources of the core`);
  writeFileSync(file, built);
}
for (const file of [path.join(HOME, 'README.md'), path.join(ROOT, 'LICENSE')]) {
  cpSync(file, path.join(DIST, path.basename(file)));
}
writeFileSync(path.join(DIST, 'package.json'), `${JSON.stringify(publishedManifest(), null, 2)}\n`);

function publishedManifest(): object {
  const { name, version, description, license, type, peerDependencies, peerDependenciesMeta } =
    manifestOf(HOME);
  return {
    name,
    version,
    description,
    license,
    type,
    exports: {
      '.': { types: './index.d.ts', default: './index.js' },
      './react': { types: './react.d.ts', default: './react.js' },
      './package.json': './package.json',
    },
    peerDependencies: { ...(peerDependencies as object), troupe: `^${String(manifestOf(ROOT)['version'])}` },
    peerDependenciesMeta,
  };
}

function manifestOf(folder: string): Record<string, unknown> {
  return JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as Record<string, unknown>;
}

function tsc(): string {
  return path.join(ROOT, 'node_modules/typescript/bin/tsc');
}
