import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TroupeInput } from '../src/index.ts';

/**
 * The first turn of a process on a store that another process has left: `first-turn.ts COUNT [checkpoint]`, with COUNT imported
 * messages in the conversation. `checkpoint`: the other process has taken a turn too, and the window is 128k. Also what the
 * process occupies then, beside what it did before it loaded anything.
 */
const MB = 1e6;
const [, , count = '10', kind = 'imported', dir = ''] = process.argv;
const bareRss = process.memoryUsage().rss;
const { createTroupe } = await import('../src/index.ts');
const { ANA, messageText, report, stop } = await import('./support.ts');

const COMPANY: TroupeInput = {
  agents: [
    {
      id: 'agent',
      contextWindow: kind === 'checkpoint' ? 128_000 : 10_000_000,
      provider: 'scripted',
      script: { rules: [{ reply: 'Understood, and noted.' }] },
    },
  ],
};

if (dir === '') {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    execFileSync(process.execPath, [fileURLToPath(import.meta.url), count, kind, folder]);
    await measure(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
} else await prepare(dir);

async function prepare(data: string): Promise<void> {
  await using troupe = await createTroupe(COMPANY, { data, onWarning: stop });
  await troupe.import(messages(Number(count)), { conversation: 'c', format: 'openai', agent: 'agent' });
  if (kind === 'checkpoint') await troupe.ask('c', { author: ANA, to: ['agent'], content: 'What was that?' });
}

async function* messages(least: number): AsyncGenerator<string> {
  for (let index = 0; index < least; index += 1) {
    const role = index % 2 === 0 ? 'user' : 'assistant';
    yield `${JSON.stringify({ role, content: messageText(index) })}\n`;
  }
}

async function measure(data: string): Promise<void> {
  const start = performance.now();
  const before = process.cpuUsage();
  await using troupe = await createTroupe(COMPANY, { data, onWarning: stop });
  await troupe.ask('c', { author: ANA, to: ['agent'], content: 'And now?' });
  const { user, system } = process.cpuUsage(before);
  const firstTurnMs = performance.now() - start;
  globalThis.gc?.();
  const { rss } = process.memoryUsage();
  report({
    firstTurnMs,
    cpuMs: (user + system) / 1_000,
    bareRssMb: bareRss / MB,
    rssMb: rss / MB,
  });
}
