import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import type { Event } from '../../src/events/index.ts';
import { DEMANDS, LONG_TEXT, LONG_TURN, TOPICS } from './demands.ts';
import { figuresOf, type SmallWindowFigures } from './figures.ts';
import type { ChatRecorder } from './recorder.ts';

export const FRAMINGS = ['marked', 'plain'] as const;
export type Framing = (typeof FRAMINGS)[number];

/** A conversation of three agents in a small window, and the demands that every prompt must still contain. */
export interface SceneOptions {
  recorder: ChatRecorder;
  model: string;
  /** Tokens of the model's whole window. */
  window: number;
  turns: number;
  framing?: Framing;
  onTurn?: (turn: number) => void;
}

const AGENTS = ['planner', 'builder', 'tester'] as const;
/** In the prompts of turns, and not in requests for summaries. */
export const PERSONA =
  'You are one of three who plan a small web shop with Ana. Answer in one or two sentences.';

export async function playSmallWindow(options: SceneOptions): Promise<SmallWindowFigures> {
  const { recorder, model, window, turns, framing = 'marked', onTurn } = options;
  const agents = AGENTS.map((id) => ({
    id,
    provider: 'openai-compatible' as const,
    baseUrl: recorder.url,
    model,
    instructions: PERSONA,
    framing,
    contextWindow: window,
    maxOutputTokens: Math.min(256, Math.floor(window / 8)),
  }));
  await using troupe = await createTroupe({ agents }, { onWarning: () => {} });
  const promptsBefore: number[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    promptsBefore.push(recorder.requests.length);
    await troupe.send('shop', {
      author: { kind: 'user', id: 'ana', name: 'Ana' },
      content: wordsOf(turn),
      to: [AGENTS[turn % AGENTS.length] ?? AGENTS[0]],
    });
    await troupe.idle();
    onTurn?.(turn);
  }
  const events: Event[] = [];
  for (let after = 0; ;) {
    const page = await troupe.events('shop', { after });
    if (page.events.length === 0) break;
    events.push(...page.events);
    after = page.events.at(-1)?.seq ?? after;
  }
  const { requests, answers } = recorder;
  return figuresOf({ window, turns, persona: PERSONA, events, requests, answers, promptsBefore });
}

export function wordsOf(turn: number): string {
  const demand = DEMANDS[turn] ?? '';
  const around = turn === LONG_TURN ? LONG_TEXT : '';
  const topic = TOPICS[turn % TOPICS.length] ?? '';
  const question = `Turn ${turn}: let us talk about ${topic}. What would you do first, and why?`;
  return [around, demand, around, question].filter((text) => text !== '').join(' ');
}
