import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { ONE_AGENT, report } from './support.ts';

/** `troupe dev` from process start to the first prompt built over HTTP. */
const cli = fileURLToPath(new URL('../src/cli.ts', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
const agents = join(dir, 'agents.json');
writeFileSync(agents, JSON.stringify(ONE_AGENT));
const start = performance.now();
const child = spawn(
  process.execPath,
  [cli, 'dev', agents, '--port', '0', '--data', join(dir, 'data'), '--json'],
  { stdio: ['ignore', 'pipe', 'ignore'] },
);
const line = await new Promise<string>((resolve) =>
  createInterface({ input: child.stdout }).once('line', resolve),
);
const { url } = JSON.parse(line) as { url: string };
const ready = performance.now() - start;
await fetch(`${url}/api/conversations/first/events`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ author: { kind: 'user', id: 'ana', name: 'Ana' }, content: 'hello' }),
});
const prompt = await fetch(`${url}/api/conversations/first/agents/agent/prompt`);
if (!prompt.ok) throw new Error(await prompt.text());
await prompt.json();
const firstPrompt = performance.now() - start;
child.kill('SIGTERM');
await new Promise((resolve) => child.once('exit', resolve));
rmSync(dir, { recursive: true, force: true });
report({ readyMs: ready, firstPromptMs: firstPrompt });
