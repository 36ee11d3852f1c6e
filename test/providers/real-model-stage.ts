import { test } from 'vitest';
import { openTroupe } from '../../src/library/runtime/create-troupe.ts';
import type { CompatibleAgent } from '../../src/library/config/agent-input.ts';
import type { Tool } from '../../src/tools/tool.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import type { Event } from '../../src/events/index.ts';
import type { Note } from '../../src/events/index.ts';
import { type Llama, LLAMA_ENV } from '../services/llama-server.ts';

const GIVEN = JSON.parse(process.env[LLAMA_ENV] ?? '{"not":"npm test fetches it, vitest alone does not"}') as
  | Llama
  | { not: string };

/** Null where no real model can be had: the tests then say why. */
export const LLAMA = 'not' in GIVEN ? null : GIVEN;

/** A test with a real model. It asserts structure alone: what so small a model says is of no use. */
export function withRealModel(name: string, run: (llama: Llama) => Promise<void>): void {
  if ('not' in GIVEN) test.skip(`${name} (skipped: no real model (${GIVEN.not}))`, () => undefined);
  else test(name, () => run(GIVEN));
}

/** One agent on the server. */
export function openReal(
  baseUrl: string,
  agent: Partial<CompatibleAgent> = {},
  more: { tools?: readonly Tool[]; limits?: { maxSteps: number } } = {},
): Promise<Troupe> {
  const bo = {
    id: 'bo',
    provider: 'openai-compatible' as const,
    baseUrl,
    model: 'smollm2',
    instructions: 'Answer in a few words.',
    contextWindow: 2_048,
    maxOutputTokens: 16,
    temperature: 0,
    ...agent,
  };
  return openTroupe({ agents: [bo], ...more }, { onWarning: () => undefined });
}

export async function eventsOf(troupe: Troupe, conversation: string): Promise<readonly Event[]> {
  return (await troupe.events(conversation)).events;
}

/** Pieces of the words of the only turn. A piece at 0 begins the text anew. */
export function wordsIn(parts: readonly Note[]): string[] {
  const pieces: string[] = [];
  for (const part of parts) {
    if (part.type !== 'text') continue;
    if (part.index === 0) pieces.length = 0;
    pieces.push(part.text);
  }
  return pieces;
}
