import { isAbout } from '../events/aspects.ts';
import type { AgentId, Event } from '../events/index.ts';
import { MAX_TALK, MAX_TRIGGER } from './bounds.ts';
import { type Draft, keepNewest, own } from './draft.ts';
import { messageText } from './message-text.ts';
import type { Talk, TurnView } from './model.ts';
import { oneLine } from './one-line.ts';

/** Remembers what was said or given, as far as turns to come may have it for an input or see it late. */
export function foldTalk(draft: Draft, event: Event): void {
  const text = wordsOf(event);
  if (text === null) return;
  const { seq, author, to, kind } = event;
  const talk = own(draft, 'talk');
  talk.push({
    seq,
    agent: author.kind === 'agent' ? (author.id as AgentId) : null,
    name: author.name,
    text: to.length === 0 ? '' : oneLine(text, MAX_TRIGGER),
    shared: kind === 'message' || kind === 'handoff',
  });
  keepNewest(talk, MAX_TALK);
}

/** Null for what nobody is given. */
function wordsOf(event: Event): string | null {
  if (!isAbout(event, 'prompt')) return null;
  switch (event.kind) {
    case 'message': {
      const text = messageText(event.body);
      return text.trim() === '' ? null : text;
    }
    case 'handoff':
      return event.body.summary.goal;
    case 'injection':
      return event.body.oneStep ? null : event.body.content;
    case 'delegation.opened':
      return event.body.task;
    case 'delegation.completed':
    case 'delegation.aborted':
      return event.to.length === 0 ? null : `${event.body.outcome}: ${event.body.result}`;
    case 'question.answered':
      return event.body.outcome === 'answered' ? event.body.content : event.body.outcome;
    case 'approval.decided':
      return [event.body.outcome, event.body.note].filter((part) => part !== '').join(': ');
    case 'command':
      return event.to.length === 0 ? null : event.body.command;
    case 'step':
    case 'tool.result':
    case 'phase.changed':
    case 'turn.failed':
    case 'turn.aborted':
      return null;
  }
}

/** Who spoke in an input, and how it begins; null where it is too long ago. */
export function triggerOf(talk: readonly Talk[], input: number | undefined): TurnView['trigger'] {
  const found = talk.findLast(({ seq }) => seq === input);
  return found ? { name: found.name, text: found.text } : null;
}

/** What others said to all between what an agent had seen and what it sees now. */
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
