import { countTokens } from '../../src/context/tokens.ts';
import { createTroupe } from '../../src/runtime.ts';
import type { Event } from '../../src/events/index.ts';
import type { ChatBody, ChatRecorder } from './recorder.ts';

/** A conversation of three agents in a small window, and the constraints that every prompt must still contain. */
export interface SceneOptions {
  recorder: ChatRecorder;
  model: string;
  /** Tokens of the model's whole window. */
  window: number;
  turns: number;
  onTurn?: (turn: number) => void;
}

export interface SmallWindowFigures {
  window: number;
  turns: number;
  failed: number;
  /** Prompts of turns, and how many of them contained every constraint stated before. */
  prompts: number;
  keeping: number;
  /** Each constraint that a prompt lacked, with the turns. */
  lost: Record<string, number[]>;
  compactions: number;
  /** Compactions adopted by agents that had not paid for them. */
  adopted: number;
  /** Requests for summaries, and their share of all prompt tokens. */
  summaries: number;
  summaryShare: number;
}

const AGENTS = ['planner', 'builder', 'tester'] as const;
const PERSONA = 'You are one of three who plan a small web shop with Ana. Answer in one or two sentences.';

/** Ana's constraints, by the turn in which she states them. */
const CONSTRAINTS: Readonly<Record<number, string>> = {
  2: 'The shop must never store credit card numbers.',
  9: 'Prices must always be shown in Swiss francs.',
  23: 'Never send mail to customers on Sundays.',
};

const TOPICS = [
  'the list of products and how it is sorted',
  'the basket, and what happens when a product is sold out',
  'the page that tells of delivery times',
  'the search field and its suggestions',
  'how returns are handled by the warehouse',
  'the export of orders for the bookkeeper',
  'the photos, their sizes and how they are loaded',
  'the newsletter and how somebody leaves it',
];

export async function playSmallWindow(options: SceneOptions): Promise<SmallWindowFigures> {
  const { recorder, model, window, turns, onTurn } = options;
  const agents = AGENTS.map((id) => ({
    id,
    provider: 'openai-compatible' as const,
    baseUrl: recorder.url,
    model,
    instructions: PERSONA,
    contextWindow: window,
    maxOutputTokens: Math.min(256, Math.floor(window / 8)),
  }));
  await using troupe = await createTroupe({ agents }, { onWarning: () => {} });
  const promptsBefore: number[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const topic = TOPICS[turn % TOPICS.length] ?? '';
    const demand = CONSTRAINTS[turn] ?? '';
    const content =
      `${demand} Turn ${turn}: let us talk about ${topic}. What would you do first, and why?`.trim();
    promptsBefore.push(recorder.requests.length);
    await troupe.send('shop', {
      author: { kind: 'user', id: 'ana', name: 'Ana' },
      content,
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
  return figuresOf({ window, turns, events, requests: recorder.requests, promptsBefore });
}

function figuresOf(played: {
  window: number;
  turns: number;
  events: readonly Event[];
  requests: readonly ChatBody[];
  promptsBefore: readonly number[];
}): SmallWindowFigures {
  const { window, turns, events, requests, promptsBefore } = played;
  const lost: Record<string, number[]> = {};
  let [prompts, keeping, summaries, summaryTokens, allTokens] = [0, 0, 0, 0, 0];
  for (const [index, { messages }] of requests.entries()) {
    const text = messages.map(({ content }) => content).join('\n');
    const tokens = countTokens(text);
    allTokens += tokens;
    if (!text.includes(PERSONA)) {
      summaries += 1;
      summaryTokens += tokens;
      continue;
    }
    prompts += 1;
    const turn = promptsBefore.findLastIndex((before) => before <= index);
    const stated = Object.entries(CONSTRAINTS).filter(([at]) => Number(at) <= turn);
    const missing = stated.map(([, words]) => words).filter((words) => !text.includes(words));
    for (const words of missing) (lost[words] ??= []).push(turn);
    if (missing.length === 0) keeping += 1;
  }
  const done = events.filter((event) => event.kind === 'compaction.done');
  return {
    window,
    turns,
    failed: events.filter(({ kind }) => kind === 'turn.failed').length,
    prompts,
    keeping,
    lost,
    compactions: events.filter(({ kind }) => kind === 'compaction').length,
    adopted: done.filter((event) => event.kind === 'compaction.done' && event.body.strategy === 'adopt')
      .length,
    summaries,
    summaryShare: allTokens === 0 ? 0 : Math.round((summaryTokens / allTokens) * 1_000) / 1_000,
  };
}
