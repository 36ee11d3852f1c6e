import { expect } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { Troupe } from '../../src/library/troupe.ts';

const MINUTE_MS = 60_000;

/** Time that stays in one minute: a prompt tells when the minute changes. */
export function oneMinute(): Clock {
  const began = systemClock.monotonic();
  const minute = Math.floor(systemClock.now() / MINUTE_MS) * MINUTE_MS;
  return {
    ...systemClock,
    now: () => minute + Math.min(MINUTE_MS - 1, Math.floor(systemClock.monotonic() - began)),
  };
}

/** The whole prompt of a turn as its model reads it. Keys of marks, times and versions are replaced: they change from run to run. */
export async function goldenPrompt(troupe: Troupe, turn: string): Promise<string> {
  const { messages, tools, verified } = await troupe.promptOf(turn);
  if (!verified) throw new Error(`${turn} is not rendered as it was sent`);
  const offered = tools.map(({ name }) => name).join(', ') || 'none';
  const parts = messages.map((message) => {
    const calls = message.role === 'assistant' ? (message.calls ?? []) : [];
    const made = calls.map(({ name, args }) => `(calls ${name} ${args})`);
    return [`=== ${message.role}`, message.content, ...made].filter(Boolean).join('\n');
  });
  return `${stable([`=== tools\n${offered}`, ...parts].join('\n'))}\n`;
}

export function stable(text: string): string {
  return text
    .replace(/#\d{6}\b/g, '#123456')
    .replace(/-[0-9a-f]{8}>/g, '-12345678>')
    .replace(/\b([adq])-[0-9a-f]{12}\b/g, '$1-0123456789ab')
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d/g, '2026-01-01 10:00')
    .replace(/(?<=[[( ])\d\d:\d\d(?=[\]) ])/g, '10:00');
}

/** Compares with the file, which `npx vitest run -u FILE` writes anew. Read what has changed as the model would. */
export async function expectGolden(text: string, name: string): Promise<void> {
  await expect(text).toMatchFileSnapshot(`../golden/${name}.txt`);
}
