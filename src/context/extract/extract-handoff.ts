import type { AgentId, Event, HandoffSummary } from '../../events/index.ts';
import { messageText } from '../message-text.ts';
import { collectFacts } from './collect-facts.ts';
import { conclusionOf, gist } from './cut-text.ts';
import { DECISION, PENDING } from './lexicon.ts';
import { bare, capped, oneLine, sentencesOf } from './sentences.ts';

const MAX_FIELD = 600;
const MAX_ITEMS = 8;
const MAX_ARTIFACTS = 20;
const LAST_REPLIES = 4;
/** A goal is never empty: the receiver must know that there is something to do. */
const GO_ON = 'Go on with this conversation.';
const QUESTION = /^\[[^\]\n]{1,200}\] .*[?？]/;

/**
 * A hand-over in the agent's own words and those of whom it worked for, found without a model; every field is short. Of
 * all agents together where none is named.
 */
export function extractHandoff(events: readonly Event[], from: AgentId | null): HandoffSummary {
  const facts = collectFacts(events, null);
  const own = events.filter(({ author }) => author.kind === 'agent' && (from === null || author.id === from));
  const replies = own.flatMap((event) => {
    const text = event.kind === 'message' ? messageText(event.body) : '';
    return text.trim() === '' ? [] : [text];
  });
  const said = replies.flatMap((reply) => sentencesOf(reply).map(bare));
  const decisions = said.filter((sentence) => DECISION.test(sentence));
  const modified = facts.filesModified.slice(-MAX_ITEMS);
  const state = [
    ...(modified.length > 0 ? [`Files modified: ${modified.join(', ')}`] : []),
    ...decisions.slice(-3),
  ];
  const plans = said.filter((sentence) => PENDING.test(sentence));
  const open = facts.pending.filter((entry) => !QUESTION.test(entry));
  return {
    goal: goalOf(events, from) || GO_ON,
    done: field(replies.slice(-LAST_REPLIES).map(resultOf)),
    state: field(state),
    next: field([...new Set([...plans.slice(-3), ...open.slice(-MAX_ITEMS)])]),
    openQuestions: facts.pending.filter((entry) => QUESTION.test(entry)).slice(-MAX_ITEMS),
    artifacts: facts.artifacts.slice(-MAX_ARTIFACTS),
    why: '',
  };
}

/** The last request of a person to this agent or to all, or else to anybody; the task of a delegation where nobody asked. */
function goalOf(events: readonly Event[], from: AgentId | null): string {
  const requests = events.filter(
    (event) =>
      event.kind === 'message' && event.author.kind === 'user' && messageText(event.body).trim() !== '',
  );
  const request =
    requests.findLast(({ to }) => to.length === 0 || from === null || to.includes(from)) ?? requests.at(-1);
  if (request?.kind === 'message') return short(messageText(request.body));
  const task = events.findLast((event) => event.kind === 'delegation.opened' && event.body.assignee === from);
  return task?.kind === 'delegation.opened' ? short(task.body.task) : '';
}

function short(text: string): string {
  return capped(text.trim().length <= MAX_FIELD ? text.trim() : gist(text), MAX_FIELD);
}

/** A short reply is its own conclusion; of a long one its first line and its last sentence. */
function resultOf(reply: string): string {
  const text = reply.trim();
  if (text.length <= 160) return oneLine(text);
  const first = sentencesOf(text).slice(0, 1).map(bare).join('');
  const last = conclusionOf(text);
  return capped(first === last ? first : `${first} … ${last}`, 320);
}

/** The newest that fit, in their order. */
function field(items: readonly string[]): string {
  const kept: string[] = [];
  let left = MAX_FIELD;
  for (const item of items.toReversed()) {
    if (item === '' || item.length + 1 > left) continue;
    left -= item.length + 1;
    kept.unshift(item);
  }
  return kept.join('\n');
}
