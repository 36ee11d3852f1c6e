import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ENV, ROOT, run } from './packed.ts';

/** What a reader does with a block of docs/tutorial.md, in their order. */
export type Step =
  | { kind: 'file'; name: string; text: string }
  /** `text` takes the place of the last line of the file. */
  | { kind: 'last line'; name: string; text: string }
  | { kind: 'shell'; text: string }
  /** Lines that are parts of what the last shell block has printed. */
  | { kind: 'printed'; lines: string[] };

/** Throws if a block says neither its file nor what it is. */
export function tutorialSteps(): Step[] {
  const doc = readFileSync(path.join(ROOT, 'docs/tutorial.md'), 'utf8');
  return [...doc.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, language = '', text = '']): Step => {
    if (language === 'sh') return { kind: 'shell', text };
    if (language === 'text') return { kind: 'printed', lines: text.trim().split('\n') };
    const [, name, rest] = /^(?:\/\/|<!--) (\S+\.(?:ts|html))(, the last line)?/.exec(text) ?? [];
    if (name === undefined) throw new Error(`a block of docs/tutorial.md names no file:\n${text}`);
    const body = text.slice(text.indexOf('\n') + 1);
    return rest === undefined ? { kind: 'file', name, text: body } : { kind: 'last line', name, text: body };
  });
}

/** Writes the file of a step. */
export function writeStep(folder: string, step: Step): void {
  if (step.kind === 'file') writeFileSync(path.join(folder, step.name), step.text);
  if (step.kind !== 'last line') return;
  const file = path.join(folder, step.name);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  writeFileSync(file, [...lines.slice(0, -1), step.text].join('\n'));
}

/**
 * Follows docs/tutorial.md literally in an empty folder below `folder`, with `tarballs` in place of the published packages. The
 * line for a real model is compiled, and then taken back: nothing here asks a vendor. Returns what was done.
 */
export async function checkTutorial(
  folder: string,
  tarballs: Readonly<Record<string, string>>,
): Promise<string> {
  const app = path.join(folder, 'tutorial');
  mkdirSync(app);
  let printed = '';
  let server: { stop(): void } | null = null;
  let restore: Step | undefined;
  const steps = tutorialSteps();
  try {
    for (const step of steps) {
      writeStep(app, step);
      if (step.kind === 'file' && step.name === 'model.ts') restore = step;
      if (step.kind === 'last line') {
        checkTypes(app);
        writeStep(app, restore ?? step);
      }
      if (step.kind === 'printed') expectPrinted(printed, step.lines);
      if (step.kind !== 'shell') continue;
      if (step.text.startsWith('node server.ts')) server = await serve(app);
      else printed = run(app, 'bash', ['-c', inShell(step.text, tarballs)]);
    }
    checkTypes(app);
  } finally {
    server?.stop();
  }
  return `the ${steps.length} blocks of docs/tutorial.md work in an empty folder`;
}

function expectPrinted(printed: string, lines: readonly string[]): void {
  const missing = lines.filter((line) => !printed.includes(line));
  if (missing.length > 0)
    throw new Error(`docs/tutorial.md promises ${JSON.stringify(missing)}; printed was:\n${printed}`);
}

const PORT = '46873';

/** In place of published packages, and not from the network where npm has a copy. */
function inShell(text: string, tarballs: Readonly<Record<string, string>>): string {
  const install = (line: string) =>
    line
      .split(' ')
      .flatMap((word) => tarballs[word]?.split(' ') ?? word)
      .join(' ')
      .replace('npm install', 'npm install --ignore-scripts --prefer-offline --no-audit --no-fund');
  const lines = text.split('\n').map((line) => (line.startsWith('npm install') ? install(line) : line));
  return `set -eo pipefail\n${lines.join('\n').replaceAll(':3000', `:${PORT}`).replaceAll('curl -s', 'curl --fail -sS')}`;
}

async function serve(app: string): Promise<{ stop(): void }> {
  const child = spawn('node', ['server.ts'], { cwd: app, env: { ...ENV, PORT }, stdio: 'pipe' });
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (text: Buffer) => (printed += text.toString()));
    child.stdout.on('data', () => resolve());
    child.once('close', () => reject(new Error(`node server.ts ended:\n${printed}`)));
  });
  return { stop: () => void child.kill() };
}

function checkTypes(app: string): void {
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2024', '--module', 'nodenext'];
  const files = ['agents.ts', 'agents.test.ts', 'ask.ts', 'server.ts', 'model.ts', 'tools.ts'].filter(
    (file) => existsSync(path.join(app, file)),
  );
  run(app, 'tsc', [
    ...options,
    '--lib',
    'es2024,esnext.disposable',
    '--types',
    'node',
    '--allowImportingTsExtensions',
    ...files,
  ]);
}
