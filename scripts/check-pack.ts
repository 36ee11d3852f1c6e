import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { checkHover } from './check-hover.ts';
import { checkNostr } from './check-nostr.ts';
import { checkNodes, checkOldNode } from './check-nodes.ts';
import { checkReadme } from './check-readme.ts';
import { checkPage } from './check-page.ts';
import { checkTesting } from './check-testing.ts';
import { checkTutorial } from './check-tutorial.ts';
import { checkWeight } from './check-weight.ts';
import { packAll } from './release.ts';
import { ENV, installTarball, packTroupe, ROOT, run } from './packed.ts';
import { openScratch } from '../test/services/scratch.ts';
import { sameApp } from './same-app.ts';

/**
 * Packs Troupe as `npm publish` would, installs the tarball into an empty folder, and uses it there: the command, the
 * entry points, the blocks of README, the tutorial, the page, and the packages beside it. Finds what tests in the checkout cannot: a file missing from
 * `files`, or wrong `exports`.
 */
const ENTRY_POINTS = ['troupe', 'troupe/http', 'troupe/client', 'troupe/integrations'];

// In memory where there is room: five installs write and remove some 100,000 files.
using scratch = openScratch();
try {
  await checkPack(scratch.folder);
} catch (error) {
  console.error(`check-pack: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

async function checkPack(folder: string): Promise<void> {
  const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
    version: string;
  };

  const app = path.join(folder, 'app');
  mkdirSync(app);
  const tarball = packTroupe(folder);
  installTarball(app, tarball);

  console.log(`check-pack: ${checkWeight(app)}`);
  const printed = run(app, 'npx', ['--no-install', 'troupe', '--version']).trim();
  if (printed !== version)
    throw new Error(`troupe --version printed ${JSON.stringify(printed)}, not ${version}`);

  for (const entry of ENTRY_POINTS) {
    const source = `const entry = await import('${entry}'); console.log(Object.keys(entry).length);`;
    const exported = Number(run(app, process.execPath, ['--input-type=module', '--eval', source]));
    if (!(exported > 0)) throw new Error(`'${entry}' exports nothing`);
    console.log(`check-pack: '${entry}' has ${exported} exports`);
  }
  console.log(`check-pack: ${checkHover(app, ENTRY_POINTS)}`);
  console.log(`check-pack: ${checkOldNode(app)}`);
  console.log(`check-pack: ${checkNodes(app, folder, [22, 24])}`);
  console.log(`check-pack: ${await checkReadme(folder, tarball)}`);
  console.log(`check-pack: ${checkTypes(app, path.join(folder, 'readme/my-app'))}`);
  const packed = await packAll(folder, tarball);
  const tarballOf = (name: string) =>
    packed.find(({ workspace }) => workspace === `packages/${name}`)?.tarball ?? '';
  console.log(`check-pack: ${checkTesting(app, tarballOf('testing'), tarballOf('evals'))}`);
  const evals = `${tarballOf('evals')} ${tarballOf('testing')}`;
  console.log(`check-pack: ${await checkTutorial(folder, { troupe: tarball, '@troupe/evals': evals })}`);
  for (const name of ['@troupe/testing', '@troupe/evals'])
    console.log(`check-pack: ${checkHover(app, [name], name)}`);
  console.log(`check-pack: ${checkNostr(app, tarballOf('nostr'))}`);
  console.log(`check-pack: ${await checkPage(app, ENV)}`);
  console.log(`check-pack: troupe ${version} works from its tarball`);
}

/** The project that README has made, one of the other template below it, and the program of the docs, in one run. */
function checkTypes(app: string, project: string): string {
  const below = path.join(project, 'second');
  run(app, 'npx', ['--no-install', 'troupe', 'init', below, '--template', 'team', '--yes']);
  writeFileSync(path.join(below, 'same-app.ts'), sameApp().program);
  run(project, 'tsc', ['-p', project, '--noEmit', '--typeRoots', path.join(ROOT, 'node_modules/@types')]);
  return 'new projects and the program of the docs compile';
}
