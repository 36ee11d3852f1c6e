import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { nodeProblem } from '../src/base/node-version.ts';
import { run } from './packed.ts';

/** Where Debian has its Node, usually one that is too old. */
const SYSTEM_NODE = '/usr/bin/node';
const LIBRARY = "import('troupe').then(({ createTroupe }) => console.log(typeof createTroupe))";
const AGENTS = `import { defineTroupe } from 'troupe';
const script: object = { rules: [{ reply: 'Answer {{n}} of mine.' }] };
export const troupe = defineTroupe({ agents: [{ id: 'ada', provider: 'scripted', model: 'm', script } as never] });
`;

/** Uses an installed Troupe with a Node that is too old: the first line says so. Returns what was found. */
export function checkOldNode(app: string): string {
  const asked = spawnSync(SYSTEM_NODE, ['--version'], { encoding: 'utf8' });
  const version = asked.stdout?.trim().slice(1);
  if (!version) return `skipped, a Node that is too old: there is no ${SYSTEM_NODE}`;
  const problem = nodeProblem(version);
  if (problem === null) return `skipped, a Node that is too old: ${SYSTEM_NODE} is ${version}`;
  for (const args of [
    ['node_modules/troupe/dist/cli.js', 'dev'],
    ['--eval', LIBRARY],
  ]) {
    const { status, stderr } = spawnSync(SYSTEM_NODE, args, { cwd: app, encoding: 'utf8' });
    if (status !== 1 || stderr.split('\n')[0] !== problem)
      throw new Error(`Node ${version} ${args.join(' ')} ended with code ${status}:\n${stderr}`);
  }
  return `Node ${version} is refused in one line`;
}

/** Runs an installed Troupe with the newest Node of each version: the library, and a message to an agents file. */
export function checkNodes(app: string, folder: string, majors: readonly number[]): string {
  writeFileSync(path.join(app, 'agents.ts'), AGENTS);
  const versions = majors.map((major) => {
    const node = installNode(path.join(folder, `node-${major}`), major);
    const imported = run(app, node, ['--eval', LIBRARY]).trim();
    if (imported !== 'function') throw new Error(`with Node ${major} createTroupe is ${imported}`);
    const send = [
      'send',
      'c1',
      'Hello',
      '--to',
      'ada',
      '--wait',
      '--agents',
      'agents.ts',
      '--data',
      `data-${major}`,
    ];
    const answer = run(app, node, ['node_modules/troupe/dist/cli.js', ...send]);
    if (!answer.includes('Answer 1 of mine.')) throw new Error(`with Node ${major} send printed ${answer}`);
    return run(app, node, ['--version']).trim();
  });
  return `the library and the command work with Node ${versions.join(' and ')}`;
}

/** The path of a Node that is installed as a package. */
function installNode(folder: string, major: number): string {
  mkdirSync(folder);
  // The package downloads its program in an install script.
  writeFileSync(path.join(folder, 'package.json'), '{"private":true,"allowScripts":{"node":true}}');
  run(folder, 'npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', `node@${major}`]);
  return path.join(folder, 'node_modules/node/bin/node');
}
