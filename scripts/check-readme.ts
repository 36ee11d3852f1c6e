import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ENV, installTarball, ROOT, run } from './packed.ts';

/** What is done with a block: run, type-checked after some declarations, or neither, for a reason. */
type Treatment = 'run' | 'start' | { file: string } | { types: string } | { reason: string };

/**
 * The pages whose blocks are used, in this order and in one folder, and every block of each by the beginning of its text. A new
 * block needs its line here.
 */
const PAGES: Readonly<Record<string, readonly (readonly [begin: string, treatment: Treatment])[]>> = {
  'README.md': [
    ['npm ci && npm run demo', { reason: 'of a checkout: test/demo.test.ts and CI run them' }],
    ['npx troupe init my-app', 'run'],
    ["import { defineTroupe } from 'troupe';", { file: 'agents.ts' }],
    ['npx troupe dev agents.ts', 'start'],
    ["import { createTroupe } from 'troupe';", { types: '' }],
  ],
  'docs/reference/http.md': [
    ['curl -s http://127.0.0.1:4600/api', 'run'],
    ["import { createClient } from 'troupe/client';", { types: '' }],
  ],
  'docs/how-to/structured-replies.md': [['const judge = {', { types: "import * as z from 'zod';\n" }]],
  'docs/how-to/images-and-files.md': [
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
  ],
  'docs/how-to/record-and-replay.md': [
    ['troupe dev --record talk.jsonl', { reason: 'needs models: test/cli/replay.test.ts runs it' }],
  ],
};

/** A picture of one point. */
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** In place of the published version, and not from the network where npm has a copy. */
const SHELL = `set -eo pipefail
npm() { if [ "$1" = install ]; then command npm install --ignore-scripts --prefer-offline "$TARBALL"; else command npm "$@"; fi; }
`;

/**
 * Runs or type-checks the blocks of `PAGES` beside an installed tarball, in a package as `npm init` writes it. Returns what was
 * done.
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
      const shell = (commands: string) =>
        run(app, 'bash', [
          '-c',
          inShell(commands.replaceAll(':4600', `:${server?.port ?? '4600'}`), tarball),
        ]);
      if (treatment === 'run') shell(text);
      else if (treatment === 'start') {
        server = await startServer(app, text.split('\n', 1)[0] ?? '');
        shell(text.slice(text.indexOf('\n')));
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
  const blocks = Object.values(PAGES).flat();
  const reasons = blocks.filter(([, treatment]) => typeof treatment === 'object' && 'reason' in treatment);
  return `${blocks.length - reasons.length} of the ${blocks.length} blocks of README and the pages beside it work`;
}

/** Throws if a page has other blocks than the table. */
function treated(): [Treatment, string][] {
  return Object.entries(PAGES).flatMap(([page, blocks]) => {
    const source = readFileSync(path.join(ROOT, page), 'utf8');
    const texts = [...source.matchAll(/^```\w+\n(.*?)^```$/gms)].map(([, text = '']) => text);
    return Array.from({ length: Math.max(texts.length, blocks.length) }, (_, index): [Treatment, string] => {
      const [begin, treatment] = blocks[index] ?? [];
      const text = texts[index];
      if (treatment !== undefined && begin !== undefined && text?.startsWith(begin)) return [treatment, text];
      throw new Error(
        `block ${index + 1} of ${page} begins with ${text?.split('\n', 1)[0]}, not with ${begin}`,
      );
    });
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
