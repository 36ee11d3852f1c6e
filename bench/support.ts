import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTroupe, type Troupe, type TroupeInput } from '../src/index.ts';

export const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;

/** A company with a model that answers at once. */
export const ONE_AGENT: TroupeInput = {
  agents: [
    {
      id: 'agent',
      contextWindow: 10_000_000,
      provider: 'scripted',
      script: { rules: [{ reply: 'Understood, and noted.' }] },
    },
  ],
  defaults: { respondWhenUnaddressed: 'agent' },
};

export async function withTroupe<T>(
  definition: TroupeInput,
  work: (troupe: Troupe, dir: string) => Promise<T>,
): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  try {
    await using troupe = await createTroupe(definition, { data: dir, onWarning: stop });
    return await work(troupe, dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** A warning means that the figure would be wrong. */
export function stop(error: unknown, where: string): void {
  console.error(where, error);
  process.exit(1);
}

/** Resolves when the next turn of a conversation has ended in the log. */
export function turnWatcher(troupe: Troupe): (conversation: string) => Promise<void> {
  const waiting = new Map<string, () => void>();
  troupe.watch((note) => {
    if (note.type !== 'event') return;
    if (note.event.kind === 'turn.done') waiting.get(note.event.conversation)?.();
    if (note.event.kind === 'turn.failed') throw new Error(note.event.body.message);
  });
  return (conversation) => new Promise((resolve) => waiting.set(conversation, resolve));
}

/** A user message without an addressee. */
export async function fill(troupe: Troupe, conversation: string, count: number): Promise<void> {
  const BATCH = 500;
  for (let from = 0; from < count; from += BATCH) {
    const size = Math.min(BATCH, count - from);
    await Promise.all(
      Array.from({ length: size }, (_, index) =>
        troupe.send(conversation, {
          author: ANA,
          content: messageText(from + index),
          replyTo: 'none' as never,
        }),
      ),
    );
  }
}

export function messageText(index: number): string {
  return `Message ${index}: the deploy of service-${index % 17} took ${index % 90} s, please note it for the report.`;
}

export function percentile(values: readonly number[], p: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))] ?? 0;
}

export function report(figures: Record<string, number>): void {
  console.log(JSON.stringify(figures));
}
