import { type ByKind, forKind } from '../../events/aspects.ts';
import type { KindAbout } from '../../events/kinds.ts';
import type { AgentId, Event, EventOf } from '../../events/index.ts';
import {
  MAX_ARROWS,
  MAX_FORKS,
  MAX_PEOPLE,
  MAX_TALK,
  MAX_TRIGGER,
  type Talk,
  type TurnView,
} from './model.ts';
import { agentOf, changeAgent, type Draft, keepNewest, own } from './draft.ts';
import { messageText } from '../../events/message-text.ts';
import { oneLine } from './words.ts';
import { foldDirections, NO_DIRECTIONS } from '../../machines/directions.ts';

/** Keeps what was said, for later turns that take it as input or have missed it. */
export function foldTalk(draft: Draft, event: Event): void {
  const text = wordsOf(event);
  if (text === null) return;
  const { seq, author, to, kind } = event;
  if (kind === 'message') foldSaying(draft, author, text);
  const talk = own(draft, 'talk');
  talk.push({
    seq,
    agent: author.kind === 'agent' ? author.id : null,
    name: author.name,
    text: to.length === 0 ? '' : oneLine(text, MAX_TRIGGER),
    shared: kind === 'message' || kind === 'handoff',
  });
  keepNewest(talk, MAX_TALK);
}

function foldSaying({ next }: Draft, { kind, id, name }: Event['author'], text: string): void {
  const saying = { name, text: oneLine(text) };
  next.opening ??= saying;
  next.closing = saying;
  const { people } = next;
  if (kind !== 'user' || people.length >= MAX_PEOPLE || people.some((person) => person.id === id)) return;
  next.people = [...people, { id, name }];
}

/** The text of an event that agents may see; null if it has none. */
function wordsOf(event: Event): string | null {
  return forKind(WORDS, event) ?? null;
}

const NO_WORDS = () => null;

const WORDS: ByKind<KindAbout<'prompt'>, string | null> = {
  message: ({ body }) => {
    const text = messageText(body);
    return text.trim() === '' ? null : text;
  },
  handoff: ({ body }) => body.summary.goal,
  injection: ({ body }) => (body.oneStep ? null : body.content),
  'delegation.opened': ({ body }) => body.task,
  'delegation.ended': ({ to, body }) => (to.length === 0 ? null : `${body.outcome}: ${body.result}`),
  'question.answered': ({ body }) => (body.outcome === 'answered' ? body.content : body.outcome),
  'approval.decided': ({ body: { outcome, args, note } }) =>
    [args === undefined ? outcome : `${outcome} with ${args}`, note].filter((part) => part !== '').join(': '),
  command: ({ to, body }) => (to.length === 0 ? null : body.command),
  step: NO_WORDS,
  'tool.result': NO_WORDS,
  'phase.changed': NO_WORDS,
  'turn.failed': NO_WORDS,
  'turn.aborted': NO_WORDS,
};

/** Speaker and beginning of an input; null if it is no longer kept. */
export function triggerOf(talk: readonly Talk[], input: number | undefined): TurnView['trigger'] {
  const found = talk.findLast(({ seq }) => seq === input);
  return found ? { name: found.name, text: found.text } : null;
}

/** Messages of others to everyone that are new in the agent's view and not its inputs. */
export function missedBy(
  talk: readonly Talk[],
  agent: AgentId,
  { seen, upTo, inputs }: { seen: number; upTo: number; inputs: readonly number[] },
): TurnView['missed'] {
  const given = new Set(inputs);
  let count = 0;
  let first = 0;
  let last = 0;
  for (let index = talk.length - 1; index >= 0; index--) {
    const each = talk[index];
    if (!each || each.seq <= seen) break;
    if (each.seq > upTo || !each.shared || each.agent === agent || given.has(each.seq)) continue;
    count += 1;
    first = each.seq;
    if (last === 0) last = each.seq;
  }
  return count === 0 ? null : { count, first, last };
}

/** An event addressed to agents. Notes of the runtime have no arrow. */
export function foldArrow(draft: Draft, { seq, at, kind, author, to }: Event): void {
  const known = to.filter((id) => agentOf(draft, id) !== null);
  if (known.length === 0 || (kind === 'injection' && author.kind === 'system')) return;
  const isAgent = author.kind === 'agent';
  const arrows = own(draft, 'arrows');
  arrows.push({ seq, at, kind, from: isAgent ? author.id : author.name, isAgent, to: known });
  keepNewest(arrows, MAX_ARROWS);
}

/** Folds the state of the whole conversation: mode, phase, archive and forks. */
export function foldConversation(draft: Draft, event: Event): void {
  const { next } = draft;
  const before = { ...NO_DIRECTIONS, mode: next.mode, archived: next.archived };
  const { mode, phase, archived } = foldDirections(before, event);
  next.mode = mode ?? next.mode;
  next.phase = phase?.phase ?? next.phase;
  next.archived = archived;
  if (event.kind === 'command') foldFork(draft, event);
}

/** The original names its copy, and the copy names its origin. */
function foldFork(draft: Draft, { body }: EventOf<'command'>): void {
  if (body.command !== 'fork') return;
  const { fork, from } = body;
  if (from) {
    draft.next.origin = { conversation: from.conversation, seq: from.seq };
    forgetWaits(draft);
  }
  if (!fork) return;
  const forks = own(draft, 'forks');
  forks.push({ conversation: fork.conversation, seq: fork.seq });
  if (forks.length > MAX_FORKS) forks.shift();
}

/** In a fork all earlier events are history: nothing is pending and only retired agents stay unavailable. */
function forgetWaits(draft: Draft): void {
  for (const { id, parked, pending } of Object.values(draft.next.agents)) {
    changeAgent(draft, id, {
      pending: pending.length === 0 ? pending : [],
      parked: parked === 'retired' ? parked : null,
      problem: null,
    });
  }
}
