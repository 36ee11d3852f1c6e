import { countTokens } from '../../src/context/budget/tokens.ts';
import type { CompactionBody, Event, EventId } from '../../src/events/index.ts';
import type { ChatBody } from './recorder.ts';
import { DEMANDS } from './demands.ts';

export interface SmallWindowFigures {
  window: number;
  turns: number;
  failed: number;
  /** Prompts of turns, and how many of them contained every demand stated before. */
  prompts: number;
  keeping: number;
  /** Each demand that a prompt lacked, with the turns. */
  lost: Record<string, number[]>;
  compactions: number;
  /** Of them: written by a model, and adopted by an agent that had not paid for it. */
  written: number;
  adopted: number;
  /** Compactions that knew demands and showed none of them. */
  silent: number;
  /** Summaries of a model that were rejected, by reason. */
  rejected: Record<string, number>;
  /** Share of all prompt tokens that were requests for summaries. */
  summaryShare: number;
  /** Share of the tokens of turns that were the compaction in front. */
  frontShare: number;
  /** Memories shown, and how many of them were old words of the person. */
  memories: number;
  questions: number;
  /** Answers of turns, and how many of them had a line that looks like a mark or a head of Troupe. */
  answers: number;
  copying: number;
}

export interface Played {
  window: number;
  turns: number;
  persona: string;
  events: readonly Event[];
  requests: readonly ChatBody[];
  answers: readonly string[];
  /** Requests sent before each turn. */
  promptsBefore: readonly number[];
}

export function figuresOf(played: Played): SmallWindowFigures {
  const { window, turns, events } = played;
  return {
    window,
    turns,
    failed: events.filter(({ kind }) => kind === 'turn.failed').length,
    ...promptFigures(played),
    ...compactionFigures(events),
    ...answerFigures(played),
  };
}

/** A compaction, in either framing: in the plain one it is a message of its own. */
const FRONT = /<summary-(\w+)>[^]*?<\/summary-\1>|From Troupe:\n(?:Summary|Selection) \d[^]*?(?=\0)/;

function promptFigures({ persona, requests, promptsBefore }: Played) {
  const lost: Record<string, number[]> = {};
  const sum = { prompts: 0, keeping: 0, summary: 0, front: 0, turns: 0, memories: 0, questions: 0 };
  for (const [index, { messages }] of requests.entries()) {
    const text = messages.map(({ content }) => `${content}\0`).join('\n');
    const tokens = countTokens(text);
    if (!text.includes(persona)) {
      sum.summary += tokens;
      continue;
    }
    sum.prompts += 1;
    sum.turns += tokens;
    sum.front += countTokens(FRONT.exec(text)?.[0] ?? '');
    const memories = memoriesOf(messages.at(-1)?.content ?? '');
    sum.memories += memories.length;
    sum.questions += memories.filter((line) => /^#\d+ Ana /.test(line)).length;
    const turn = promptsBefore.findLastIndex((before) => before <= index);
    const stated = Object.entries(DEMANDS).filter(([at]) => Number(at) <= turn);
    const missing = stated.map(([, words]) => words).filter((words) => !text.includes(words));
    for (const words of missing) (lost[words] ??= []).push(turn);
    if (missing.length === 0) sum.keeping += 1;
  }
  return {
    prompts: sum.prompts,
    keeping: sum.keeping,
    lost,
    summaryShare: shareOf(sum.summary, sum.summary + sum.turns),
    frontShare: shareOf(sum.front, sum.turns),
    memories: sum.memories,
    questions: sum.questions,
  };
}

/** Of either framing, and of the fences of summaries; also where nothing but the name of somebody stands in brackets. */
const COPIED =
  /^[ \t]*(?:\[[^\]\n]*(?:@|#\d|>|reminder|new)[^\]\n]*\]|<\/?(?:summary|msg|reminder)-|#\d{6}\s*$|From [^\n]{1,80}:)/m;

function answerFigures({ persona, requests, answers }: Played) {
  const said = answers.filter((_, at) =>
    requests[at]?.messages.some(({ content }) => content.includes(persona)),
  );
  return { answers: said.length, copying: said.filter((text) => COPIED.test(text)).length };
}

/** The memories of a turn's reminder. */
function memoriesOf(content: string): string[] {
  const item = content.split('\nmemories: ')[1] ?? '';
  return item.split('\n').filter((line) => /^#\d+ \S+ \(\d{4}-/.test(line));
}

function compactionFigures(events: readonly Event[]) {
  const made = new Map<EventId, CompactionBody>();
  const shared = new Set<EventId>();
  const rejected: Record<string, number> = {};
  for (const event of events) {
    if (event.kind === 'compaction') made.set(event.id, event.body);
    if (event.kind === 'baseline' && event.body.adopts?.compaction) {
      const { compaction } = event.body.adopts;
      if (made.get(compaction)?.by !== event.author.id) shared.add(compaction);
    }
    const why =
      event.kind === 'compaction.progress' && event.body.phase === 'failed'
        ? (event.body.message ?? 'no reason')
        : null;
    if (why !== null) rejected[why] = (rejected[why] ?? 0) + 1;
  }
  const bodies = [...made.values()];
  return {
    compactions: bodies.length,
    written: bodies.filter(({ strategy }) => strategy === 'summary').length,
    adopted: shared.size,
    silent: bodies.filter(isSilent).length,
    rejected,
  };
}

function isSilent({ facts, demands, listing, quotes }: CompactionBody): boolean {
  const shown = [demands, listing, ...quotes.map(({ text }) => text)].join('\n');
  const words = facts.constraints.map((entry) => (typeof entry === 'string' ? entry : entry.text));
  return words.length > 0 && !words.some((text) => shown.includes(text));
}

function shareOf(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((part / whole) * 1_000) / 1_000;
}
