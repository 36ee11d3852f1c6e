import {
  type AgentId,
  type Event,
  hasAuthority,
  type HandoffSummary,
  isTaskEnd,
  messageText,
  type Saying,
} from '../../events/index.ts';
import { isTrustedPerson, type People, type Trusted, header, peopleOf } from '../text/people.ts';
import { atOnce, type Steps } from '../text/steps.ts';
import { collectFactsSteps } from './facts.ts';
import { bare, capped, conclusionOf, gist, oneLine, sentencesOf } from '../text/cut-text.ts';
import { DECISION, PENDING } from './lexicon.ts';
import { readable, readLimits, spokenText, labelOf } from './spoken-text.ts';

const MAX_FIELD = 600;
const MAX_ITEMS = 8;
const MAX_ARTIFACTS = 20;
const LAST_REPLIES = 4;
/** Goal of a handoff without one, so that the receiver knows that there is something to do. */
const GO_ON = 'Go on with this conversation.';

/**
 * A handoff summary made without a model, from the words of the agent and of those for whom it worked. Every field is
 * short. `from`: the agent that hands off; null for all agents together. Words of an untrusted person never become a goal or
 * a next step.
 */
export function* handoffSteps(
  events: readonly Event[],
  from: AgentId | null,
  trusted: Trusted = null,
): Steps<HandoffSummary> {
  const facts = yield* collectFactsSteps(events, null, trusted);
  const own = yield* sentencesOfAgents(events, from);
  const decisions = own.sentences.filter((sentence) => DECISION.test(sentence));
  const modified = facts.filesModified.slice(-MAX_ITEMS);
  const state = [
    ...(modified.length > 0 ? [`Files modified: ${modified.join(', ')}`] : []),
    ...decisions.slice(-3),
  ];
  const plans = own.sentences.filter((sentence) => PENDING.test(sentence));
  const open = facts.pending.filter((entry): entry is Saying => typeof entry !== 'string');
  const questions = open.filter(({ asks }) => asks !== undefined);
  const tasks = open.filter(({ asks, untrusted }) => asks === undefined && untrusted !== true);
  const people = peopleOf(events);
  return {
    goal: goalOf(events, from, trusted) || GO_ON,
    done: field(own.replies.slice(-LAST_REPLIES).map(resultOf)),
    state: field(state),
    next: field([
      ...new Set([...plans.slice(-3), ...tasks.slice(-MAX_ITEMS).map((task) => named(task, people, from))]),
    ]),
    openQuestions: questions.slice(-MAX_ITEMS).map((question) => named(question, people, null)),
    artifacts: facts.artifacts.slice(-MAX_ARTIFACTS),
    why: '',
  };
}

export function extractHandoff(
  events: readonly Event[],
  from: AgentId | null,
  trusted: Trusted = null,
): HandoffSummary {
  return atOnce(handoffSteps(events, from, trusted));
}

/** The text with its speaker, except for words of the agent that hands off. */
function named(saying: Saying, people: People, from: AgentId | null): string {
  const isOwn = saying.by.kind === 'agent' && (from === null || saying.by.id === from);
  if (isOwn && saying.asks === undefined) return saying.text;
  return `${header(labelOf(saying, people))} ${saying.text}`;
}

function* sentencesOfAgents(
  events: readonly Event[],
  from: AgentId | null,
): Steps<{ replies: string[]; sentences: string[] }> {
  const own = events.filter(({ author }) => author.kind === 'agent' && (from === null || author.id === from));
  const limits = readLimits(own);
  const replies: string[] = [];
  const sentences: string[] = [];
  for (const event of own) {
    const reply = event.kind === 'message' ? readable(messageText(event.body), limits(event)) : '';
    if (reply.trim() === '') continue;
    replies.push(reply);
    sentences.push(...sentencesOf(reply).map(bare));
    yield reply.length;
  }
  return { replies, sentences };
}

/**
 * The last request of a trusted person to this agent or to all; otherwise to anybody; otherwise the task of a delegation, or
 * what a run is for.
 */
function goalOf(events: readonly Event[], from: AgentId | null, trusted: Trusted): string {
  const requests = events.filter(
    (event) =>
      event.kind === 'message' && isTrustedPerson(trusted, event) && messageText(event.body).trim() !== '',
  );
  const request =
    requests.findLast(({ to }) => to.length === 0 || from === null || to.includes(from)) ?? requests.at(-1);
  if (request?.kind === 'message') return short(messageText(request.body));
  const task = events.findLast((event) => event.kind === 'delegation.opened' && event.body.assignee === from);
  if (task?.kind === 'delegation.opened') return short(task.body.task);
  const run = events.findLast((event) => event.kind === 'run.directive' && hasAuthority(event));
  return run?.kind === 'run.directive' ? short(run.body.directive) : '';
}

function short(text: string): string {
  return capped(text.trim().length <= MAX_FIELD ? text.trim() : gist(text), MAX_FIELD);
}

/** A short reply, or the first and the last sentence of a long one. */
function resultOf(reply: string): string {
  const text = reply.trim();
  if (text.length <= 160) return oneLine(text);
  const first = sentencesOf(text).slice(0, 1).map(bare).join('');
  const last = conclusionOf(text);
  return capped(first === last ? first : `${first} … ${last}`, 320);
}

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

/** Kinds of events between two parties, which are not for everybody in the next phase. */
const BETWEEN_TWO: readonly Event['kind'][] = ['delegation.opened', 'question', 'approval.requested'];

/** The outcome of a phase, for everybody in the next one. Made without a model. Null if no agent has spoken. */
export function* phaseSteps(events: readonly Event[], trusted: Trusted): Steps<HandoffSummary | null> {
  const open = events.filter((event) => !BETWEEN_TWO.includes(event.kind) && !isTaskEnd(event));
  const isSaid = open.some((event) => event.author.kind === 'agent' && spokenText(event).trim() !== '');
  if (!isSaid) return null;
  return { ...(yield* handoffSteps(open, null, trusted)), by: 'extraction' };
}
