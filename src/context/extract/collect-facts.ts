import type { Event, Facts, StepBody } from '../../events/index.ts';
import type { People } from '../people.ts';
import { errorLines, errorsOf } from './find-errors.ts';
import { constraintsOf } from './find-constraints.ts';
import { filesOf } from './find-files.ts';
import { questionsOf, tasksOf, tasksOfCall } from './find-pending.ts';
import { findWords } from './find-words.ts';
import { said } from './said.ts';
import { capped } from './sentences.ts';
import { speakerOf } from '../summary/speakers.ts';

/** A listing of a thousand files is in its artifact; carrying it on would push out what somebody needs. */
const MAX_NEW_PER_RESULT = 150;
const MAX_NAME = 256;
const MAX_QUESTION = 320;

/** Namesakes are not told apart here: an entry must not depend on who else has spoken. */
const NOBODY: People = new Map();

type Lists = { [K in keyof Facts]: Set<string> };

/**
 * What can be found without a model and must survive every compaction. A fold over events: collected in two goes or in
 * one, the lists are the same. Nothing in `previous` is dropped but pending items that the events show to be done.
 */
export function collectFacts(events: readonly Event[], previous: Facts | null): Facts {
  const lists: Lists = {
    artifacts: new Set(previous?.artifacts),
    filesRead: new Set(previous?.filesRead),
    filesModified: new Set(previous?.filesModified),
    identifiers: new Set(previous?.identifiers),
    errors: new Set(previous?.errors),
    constraints: new Set(previous?.constraints),
    pending: new Set(previous?.pending),
  };
  for (const event of events) note(lists, event);
  return {
    artifacts: [...lists.artifacts],
    filesRead: [...lists.filesRead],
    filesModified: [...lists.filesModified],
    identifiers: [...lists.identifiers],
    errors: [...lists.errors],
    constraints: [...lists.constraints],
    pending: [...lists.pending],
  };
}

function note(lists: Lists, event: Event): void {
  if (event.kind === 'tool.result') {
    noteArtifacts(lists, event.body.content);
    if (event.body.artifact !== undefined) lists.artifacts.add(`@artifact/${event.body.artifact}`);
    add(lists.errors, errorsOf(event.body));
    noteWords(lists, event.body.content, false);
    return;
  }
  const text = said(event);
  if (event.kind === 'step') noteCalls(lists, event.body);
  if (text !== '') noteSpeech(lists, event, text);
  noteDealings(lists, event);
}

function noteSpeech(lists: Lists, event: Event, text: string): void {
  noteArtifacts(lists, text);
  noteWords(lists, text, true);
  add(lists.errors, errorLines(text));
  // What the runtime itself says is not carried: its rules stand in the frozen layers.
  if (event.author.kind !== 'system')
    add(lists.constraints, constraintsOf(text, event.author.kind === 'agent'));
  const { open, done } = tasksOf(text);
  add(lists.pending, open);
  for (const task of done) lists.pending.delete(task);
  if (event.kind === 'message') noteQuestions(lists, event, text);
}

function noteCalls(lists: Lists, { calls }: StepBody): void {
  for (const call of calls) {
    const { read, modified } = filesOf(call);
    add(lists.filesRead, read);
    add(lists.filesModified, modified);
    noteWords(lists, call.args, false);
    noteArtifacts(lists, call.args);
    const { open, done } = tasksOfCall(call);
    add(lists.pending, open);
    for (const task of done) lists.pending.delete(task);
  }
}

const ARTIFACT = /@artifact\/([A-Za-z0-9][\w.@:-]{0,255})/g;

function noteArtifacts(lists: Lists, text: string): void {
  if (!text.includes('@artifact/')) return;
  for (const [, id = ''] of text.matchAll(ARTIFACT))
    lists.artifacts.add(`@artifact/${id.replace(/[.:@-]+$/, '')}`);
}

/** A path that a call named is in a list of files already. */
function noteWords({ identifiers, filesRead, filesModified }: Lists, text: string, spoken: boolean): void {
  const { paths, ids, names } = findWords(text, spoken);
  const words = [...ids, ...paths, ...names].filter(
    (word) => !filesRead.has(word) && !filesModified.has(word),
  );
  const fresh = words.filter((word) => word.length <= MAX_NAME && !identifiers.has(word));
  add(identifiers, spoken ? fresh : [...new Set(fresh)].slice(0, MAX_NEW_PER_RESULT));
}

const ASKED = /^\[([^\]\n]{1,200})\] .*[?？]["'”’»)]*(?: \(question [^)]*\))?$/;

/** A question stays open until somebody has spoken who could answer it; `[name]` in front tells whose it is. */
function noteQuestions({ pending }: Lists, event: Event, text: string): void {
  const who = speakerOf(event, NOBODY);
  for (const entry of pending) {
    const asker = ASKED.exec(entry)?.[1];
    if (asker !== undefined && answers(event, who, asker)) pending.delete(entry);
  }
  add(
    pending,
    questionsOf(text).map((question) => capped(`[${who}] ${question}`, MAX_QUESTION)),
  );
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
function noteDealings({ pending, errors }: Lists, event: Event): void {
  const close = (opening: string): void => {
    for (const entry of pending) if (entry.startsWith(opening)) pending.delete(entry);
  };
  switch (event.kind) {
    case 'delegation.opened':
      pending.add(
        capped(
          `delegation ${event.body.delegation} to @${event.body.assignee}: ${oneLine(event.body.task)}`,
          MAX_QUESTION,
        ),
      );
      break;
    case 'delegation.completed':
    case 'delegation.aborted':
      close(`delegation ${event.body.delegation} to `);
      break;
    case 'approval.requested':
      pending.add(
        capped(
          `approval ${event.body.request} of ${event.body.tool}: ${oneLine(event.body.text)}`,
          MAX_QUESTION,
        ),
      );
      break;
    case 'approval.decided':
      close(`approval ${event.body.request} of `);
      break;
    case 'question':
      pending.add(
        capped(
          `[${speakerOf(event, NOBODY)}] ${oneLine(event.body.text)} (question ${event.body.question})`,
          MAX_QUESTION,
        ),
      );
      break;
    case 'turn.failed':
      errors.add(capped(`${event.body.code}: ${oneLine(event.body.message)}`, MAX_QUESTION));
      break;
    default:
      break;
  }
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ').trim();
}

function add(list: Set<string>, entries: readonly string[]): void {
  for (const entry of entries) if (entry !== '') list.add(entry);
}
