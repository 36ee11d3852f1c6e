import type { Event } from '../../events/index.ts';
import type { People } from '../people.ts';
import { speakerOf } from '../summary/speakers.ts';
import { questionsOf } from './find-pending.ts';
import { capped, oneLine } from './sentences.ts';

const MAX_ITEM = 320;

/** Namesakes are not told apart here: an entry must not depend on who else has spoken. */
const NOBODY: People = new Map();

const ASKED = /^\[([^\]\n]{1,200})\] .*[?？]["'”’»)]*(?: \(question [^)]{0,320}\))?$/;

/** A question stays open until somebody has spoken who could answer it; `[name]` in front tells whose it is. */
export function noteQuestions(pending: Set<string>, event: Event, text: string): void {
  const who = speakerOf(event, NOBODY);
  for (const entry of pending) {
    const asker = ASKED.exec(entry)?.[1];
    if (asker !== undefined && answers(event, who, asker)) pending.delete(entry);
  }
  for (const question of questionsOf(text)) pending.add(capped(`[${who}] ${question}`, MAX_ITEM));
}

/** A person is answered by anybody else, an agent by people and by the agents that it asked. */
function answers({ author }: Event, who: string, asker: string): boolean {
  const [name = '', asked = ''] = asker.split(' -> ');
  const [speaker = ''] = who.split(' -> ');
  if (speaker === name || author.kind === 'system') return false;
  if (author.kind === 'user' || !name.startsWith('@')) return true;
  return asked.split(', ').includes(speaker);
}

/** What is open between agents and people: each is closed by the event that names its id. */
export function noteDealings(pending: Set<string>, event: Event): void {
  switch (event.kind) {
    case 'delegation.opened':
      open(pending, delegation(event.body.delegation, ` @${event.body.assignee}: ${event.body.task}`));
      break;
    case 'delegation.completed':
    case 'delegation.aborted':
      close(pending, delegation(event.body.delegation));
      break;
    case 'approval.requested':
      open(pending, approval(event.body.request, ` ${event.body.tool}: ${event.body.args}`));
      break;
    case 'approval.decided':
      close(pending, approval(event.body.request));
      break;
    case 'question.answered':
      for (const item of pending)
        if (item.endsWith(`(question ${event.body.question})`)) pending.delete(item);
      break;
    case 'question':
      open(pending, `[${speakerOf(event, NOBODY)}] ${event.body.text} (question ${event.body.question})`);
      break;
    default:
      break;
  }
}

function delegation(id: string, rest = ''): string {
  return `delegation ${id} to${rest}`;
}

function approval(id: string, rest = ''): string {
  return `approval ${id} of${rest}`;
}

function open(pending: Set<string>, item: string): void {
  pending.add(capped(oneLine(item), MAX_ITEM));
}

function close(pending: Set<string>, opening: string): void {
  for (const item of pending) if (item.startsWith(`${opening} `)) pending.delete(item);
}
