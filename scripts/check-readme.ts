import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ENV, installTarball, ROOT, run } from './packed.ts';

/** What is done with a block: run, type-checked after some declarations, or neither, for a reason. */
type Treatment = 'run' | 'start' | { file: string } | { types: string } | { reason: string };

/** Every block of README by the beginning of its text, in their order. A new block needs its line here. */
const BLOCKS: readonly (readonly [begin: string, treatment: Treatment])[] = [
  ['npm ci && npm run demo', { reason: 'of a checkout: test/demo.test.ts and CI run them' }],
  ['npx troupe init my-app', 'run'],
  ["import { defineTroupe } from 'troupe';", { file: 'agents.ts' }],
  ['npx troupe dev agents.ts', 'start'],
  ["import { createTroupe } from 'troupe';", { types: '' }],
  ['npx troupe context hello planner --against 1', 'run'],
  ['export MONGODB_URL=', { reason: 'needs MongoDB and Redis: test/cli/serve.test.ts and the rig run it' }],
  ["import { createClient } from 'troupe/client';", { types: '' }],
  ['const judge = {', { types: "import * as z from 'zod';\n" }],
  ['npx troupe send hello "What is wrong here?"', 'run'],
  [
    "await troupe.send('hello', {",
    {
      types: `import type { Troupe } from 'troupe';
declare const troupe: Troupe;
declare const bytes: Uint8Array;
const author = { kind: 'user' as const, id: 'ana', name: 'Ana' };
`,
    },
  ],
  ['troupe dev --record talk.jsonl', { reason: 'needs models: test/cli/replay.test.ts runs it' }],
];

/** A picture of one point. */
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** In place of the published version, and not from the network where npm has a copy. */
const SHELL = `set -eo pipefail
npm() { if [ "$1" = install ]; then command npm install --ignore-scripts --prefer-offline "$TARBALL"; else command npm "$@"; fi; }
`;

/**
 * Runs or type-checks the blocks of README beside an installed tarball, in a package as `npm init` writes it. Returns what
 * was done.
 */
export async function checkReadme(folder: string, tarball: string): Promise<string> {
  const app = path.join(folder, 'readme');
  mkdirSync(app);
  run(app, 'npm', ['init', '-y']);
  installTarball(app, tarball);
  writeFileSync(path.join(app, 'screenshot.png'), Buffer.from(PNG, 'base64'));
  writeFileSync(path.join(app, 'notes.md'), '# Notes\n');
  const checked: string[] = [];
  let server: Server | null = null;
  try {
    for (const [index, [treatment, text]] of treated().entries()) {
      if (treatment === 'run') run(app, 'bash', ['-c', inShell(text, tarball)]);
      else if (treatment === 'start') {
        server = await startServer(app, text.split('\n', 1)[0] ?? '');
        const rest = text.slice(text.indexOf('\n')).replaceAll(':4600', `:${server.port}`);
        run(app, 'bash', ['-c', inShell(rest, tarball)]);
      } else if ('file' in treatment) {
        writeFileSync(path.join(app, treatment.file), text);
        checked.push(treatment.file);
      } else if ('types' in treatment) {
        const name = `block-${index}.mts`;
        writeFileSync(path.join(app, name), treatment.types + text);
        checked.push(name);
      }
    }
    checkTypes(app, checked);
  } finally {
    server?.stop();
  }
  const reasons = BLOCKS.filter(([, treatment]) => typeof treatment === 'object' && 'reason' in treatment);
  return `${BLOCKS.length - reasons.length} of the ${BLOCKS.length} blocks of README work`;
}

/** Throws if README has other blocks than the table. */
function treated(): [Treatment, string][] {
  const readme = readFileSync(path.join(ROOT, 'README.md'), 'utf8');
  const texts = [...readme.matchAll(/^```\w+\n(.*?)^```$/gms)].map(([, text = '']) => text);
  return Array.from({ length: Math.max(texts.length, BLOCKS.length) }, (_, index) => {
    const [begin, treatment] = BLOCKS[index] ?? [];
    const text = texts[index];
    if (treatment !== undefined && begin !== undefined && text?.startsWith(begin)) return [treatment, text];
    throw new Error(`block ${index + 1} of README begins with ${text?.split('\n', 1)[0]}, not with ${begin}`);
  });
}

/** Requests must succeed, and a stream is read for a moment only: curl calls its time limit an error. */
function inShell(text: string, tarball: string): string {
  const commands = text
    .replaceAll('curl -s', 'curl --fail -sS')
    .replaceAll(/curl --fail -sSN [^#\n]*/g, (curl) => `{ ${curl.trim()} --max-time 2 || [ $? = 28 ]; } `);
  return `TARBALL=${tarball}\n${SHELL}${commands}`;
}

interface Server {
  port: string;
  stop(): void;
}

async function startServer(app: string, command: string): Promise<Server> {
  const child = spawn('bash', ['-c', command], { cwd: app, env: ENV, detached: true, stdio: 'pipe' });
  const stop = () => void (child.pid !== undefined && process.kill(-child.pid, 'SIGTERM'));
  // Read to the end: a closed pipe would end the server.
  let printed = '';
  const port = await new Promise<string>((resolve, reject) => {
    function read(text: Buffer): void {
      printed += text.toString();
      const found = /http:\/\/127\.0\.0\.1:(\d+)\//.exec(printed)?.[1];
      if (found !== undefined) resolve(found);
    }
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('close', () => reject(new Error(`${command} ended:\n${printed}`)));
  });
  return { port, stop };
}

function checkTypes(app: string, files: readonly string[]): void {
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2024', '--module', 'nodenext'];
  const types = ['--types', 'node', '--typeRoots', path.join(ROOT, 'node_modules/@types')];
  run(app, 'tsc', [...options, '--lib', 'es2024,esnext.disposable', ...types, ...files]);
}
