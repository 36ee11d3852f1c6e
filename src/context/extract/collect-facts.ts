import type { Event, EventOf, Facts, StepBody } from '../../events/index.ts';
import { errorLines, errorsOf } from './find-errors.ts';
import { constraintsOf } from './find-constraints.ts';
import { filesOf } from './find-files.ts';
import { tasksOf, tasksOfCall } from './find-pending.ts';
import { findWords } from './find-words.ts';
import { noteDealings, noteQuestions } from './open-items.ts';
import { said } from './said.ts';
import { capped, oneLine } from './sentences.ts';

/** A listing of a thousand files is in its artifact; carrying it on would push out what somebody needs. */
const MAX_NEW_PER_RESULT = 150;
const MAX_NAME = 256;
const MAX_FAILURE = 240;

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
  noteDealings(lists.pending, event);
  if (event.kind === 'turn.failed') lists.errors.add(failureOf(event.body));
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
  if (event.kind === 'message') noteQuestions(lists.pending, event, text);
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
    lists.artifacts.add(`@artifact/${id.replace(/(?<![.:@-])[.:@-]+$/, '')}`);
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

function failureOf({ code, message }: EventOf<'turn.failed'>['body']): string {
  return capped(`${code}: ${oneLine(message)}`, MAX_FAILURE);
}

function add(list: Set<string>, entries: readonly string[]): void {
  for (const entry of entries) if (entry !== '') list.add(entry);
}
