import { type Author, type Event, isAbout } from '../../events/index.ts';
import { agentLabel, NOBODY } from '../people.ts';
import { speakerOf } from '../summary/speakers.ts';
import type { Trusted } from '../trusted.ts';
import { questionsOf } from './find-pending.ts';
import { addSaying, type Entry, type Sayings, speakerOfEvent, wordsOf } from './sayings.ts';
import { capped, oneLine } from './sentences.ts';

const MAX_ITEM = 320;
/** Of what is made one line. */
const MAX_READ = 4_096;

/** As questions stood there before their speaker was kept beside them. */
const ASKED = /^\[([^\]\n]{1,200})\] .*[?？]["'”’»)]*(?: \(question [^)]{0,320}\))?$/;

/** A question stays open until somebody has spoken who could answer it. */
export function noteQuestions(pending: Sayings, event: Event, text: string, trusted: Trusted): void {
  for (const [key, entry] of pending) if (isAnswered(entry, event)) pending.delete(key);
  for (const question of questionsOf(text)) ask(pending, event, question, trusted);
}

function ask(pending: Sayings, event: Event, question: string, trusted: Trusted): void {
  const asks = event.to.map((agent) => agentLabel(agent));
  addSaying(pending, { text: capped(question, MAX_ITEM), ...speakerOfEvent(event, trusted), asks });
}

function isAnswered(entry: Entry, { author, to }: Event): boolean {
  if (author.kind === 'system') return false;
  if (typeof entry === 'string') {
    const asker = ASKED.exec(entry)?.[1];
    // Such entries were all written by the first rules.
    return asker !== undefined && answersNamed(author, speakerOf({ author, to } as Event, NOBODY, 1), asker);
  }
  const { by, asks } = entry;
  if (!asks || (by.kind === author.kind && by.id === author.id)) return false;
  return mayAnswer(author, by.kind === 'agent', asks);
}

/** A person is answered by anybody else, an agent by people and by the agents that it asked. */
function mayAnswer(author: Author, byAgent: boolean, asked: readonly string[]): boolean {
  return author.kind === 'user' || !byAgent || asked.includes(agentLabel(author.id));
}

function answersNamed(author: Author, who: string, asker: string): boolean {
  const [name = '', asked = ''] = asker.split(' -> ');
  const [speaker = ''] = who.split(' -> ');
  if (speaker === name) return false;
  const agents = asked.split(', ').map((agent) => agent.replace(/^@/, ''));
  return mayAnswer(author, name.startsWith('@'), agents);
}

/** What is open between agents and people: each is closed by the event that names its id. */
export function noteDealings(pending: Sayings, event: Event): void {
  if (!isAbout(event, 'taskOpening') && !isAbout(event, 'taskEnd')) return;
  switch (event.kind) {
    case 'delegation.opened':
      open(pending, event, delegation(event.body.delegation, ` @${event.body.assignee}: ${event.body.task}`));
      break;
    case 'delegation.completed':
    case 'delegation.aborted':
      close(pending, delegation(event.body.delegation));
      break;
    case 'approval.requested':
      open(pending, event, approval(event.body.request, ` ${event.body.tool}: ${event.body.args}`));
      break;
    case 'approval.decided':
      close(pending, approval(event.body.request));
      break;
    case 'question.answered':
      for (const [key, entry] of pending)
        if (wordsOf(entry).endsWith(`(question ${event.body.question})`)) pending.delete(key);
      break;
    case 'question': {
      // The id must stay, however long the question is.
      const id = ` (question ${event.body.question})`;
      const text = capped(oneLine(event.body.text.slice(0, MAX_READ)), Math.max(MAX_ITEM - id.length, 2));
      ask(pending, event, `${text}${id}`, null);
      break;
    }
  }
}

function delegation(id: string, rest = ''): string {
  return `delegation ${id} to${rest}`;
}

function approval(id: string, rest = ''): string {
  return `approval ${id} of${rest}`;
}

function open(pending: Sayings, event: Event, item: string): void {
  addSaying(pending, {
    text: capped(oneLine(item.slice(0, MAX_READ)), MAX_ITEM),
    ...speakerOfEvent(event, null),
  });
}

function close(pending: Sayings, opening: string): void {
  for (const [key, entry] of pending) if (wordsOf(entry).startsWith(`${opening} `)) pending.delete(key);
}
