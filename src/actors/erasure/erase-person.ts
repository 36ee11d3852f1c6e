import {
  addPerson,
  createPeople,
  DEFAULT_POLICY,
  extractionSteps,
  type People,
} from '../../context/index.ts';
import {
  type ActorRecord,
  type Author,
  type CompactionBody,
  type ConversationId,
  ERASED_WORDS,
  type Event,
  type EventDraft,
  type EventId,
  type EventOf,
  MAX_ERASED,
  runtimeId,
  type TenantId,
  isErasure,
} from '../../events/index.ts';
import { placesOf } from '../../store/conversation-keys.ts';
import type { ActorPatch, ConversationKey, EntryKey, KeyRange } from '../../store/store.ts';
import { untilAtRest } from '../conversations/delete-conversation.ts';
import type { EngineDeps } from '../actor/engine-deps.ts';
import { patchAtRest } from '../actor/at-rest.ts';
import { inSlices, readPages } from '../log/read-log.ts';
import { emptyCount, type Erased } from './erase-conversations.ts';
import { emptied, masked, maskedJson } from './hole.ts';
import { conversationsOf, isBy, type OnRead, originOf, type Survey, survey } from './survey.ts';

/**
 * Erases what a person has said, and what agents made of it, in all conversations of a tenant.
 *  E1  All words are erased in the person's own events and in those of every turn that answered the person, directly or through
 *      other turns. In other events, words that they repeat from the person are erased.
 *  E2  Rows keep their hash and chain value. Each erased event names an `erasure` in the same log, which has the hash of its
 *      remaining content.
 *  E3  The rows change first, then the erasure is appended. So a process that sees it folds the log again without erased words.
 *  E4  Safe to repeat, after a crash and for words that arrived meanwhile.
 *  E5  No agent is at work in a conversation while its events change. Throws `command_refused` if one does not rest.
 */
export async function erasePerson(
  deps: ErasureDeps,
  { tenant, person, id, by }: { tenant: TenantId; person: string; id: string; by: Author },
  onRead: OnRead = () => undefined,
): Promise<Erased> {
  const found = await survey(deps, tenant, person, onRead);
  const work: Work = {
    deps,
    tenant,
    person,
    id,
    by,
    found,
    erased: emptyCount(),
    gone: new Set(),
    kept: new Set(),
    outputs: new Set(),
  };
  for await (const log of conversationsOf(deps.store, tenant)) {
    onRead(log.conversation);
    await eraseLog(work, log);
  }
  await eraseEntries(work);
  return work.erased;
}

interface ErasureDeps extends EngineDeps {
  forget: (log: ConversationKey) => void;
  /** Hashes of texts of the agents file, which are not the person's even if the person quotes them. */
  spared: ReadonlySet<string>;
}

interface Work {
  deps: ErasureDeps;
  tenant: TenantId;
  person: string;
  id: string;
  by: Author;
  found: Survey;
  erased: Erased;
  /** `gone`: hashes of attachments of erased events. `kept`: those of all other events. */
  gone: Set<string>;
  kept: Set<string>;
  outputs: Set<string>;
}

/** Maximum rounds, each for messages that arrived during the one before. */
const MAX_ROUNDS = 10;

async function eraseLog(work: Work, log: ConversationKey): Promise<void> {
  const { store } = work.deps;
  let erasures = 0;
  for (let round = 1, from = 0; round <= MAX_ROUNDS; round += 1) {
    await untilAtRest(work.deps, log);
    const head = await store.head(log);
    const range = { after: from, upTo: head };
    const words = await eachHole(work, log, range, { name: `${round}w`, left: holeOf });
    // Compactions and baselines that cover erased events are made again from the remaining words.
    const covers = await eachHole(work, log, { after: 0, upTo: head }, { name: `${round}c`, left: coverOf });
    erasures = Math.max(erasures, words, covers);
    from = head;
    if ((await store.head(log)) <= Math.max(head, erasures)) break;
  }
  if (erasures === 0) return;
  work.erased.conversations += 1;
  await forgetLog(work, log, erasures);
}

type HoleOf = (work: Work, event: Event, erasure: EventId, isCovering: boolean) => Promise<Event | null>;

/** Replaces events with words of the person by their erased forms. Returns the seq of the last erasure; 0 if there was none. */
async function eachHole(
  work: Work,
  log: ConversationKey,
  range: { after: number; upTo: number },
  { name, left }: { name: string; left: HoleOf },
): Promise<number> {
  const holes: Event[] = [];
  let isCovering = false;
  for await (const events of readPages(work.deps.store, log, range))
    for (const event of events) {
      const erasure = erasureId(work, name, Math.floor(holes.length / MAX_ERASED));
      const hole = isErasure(event) ? null : await left(work, event, erasure, isCovering);
      if (hole) holes.push(hole);
      isCovering ||= event.erased !== undefined;
    }
  return writeHoles(work, log, holes, name);
}

async function holeOf(work: Work, event: Event, erasure: EventId): Promise<Event | null> {
  const { found, person } = work;
  const isWhole = isTheirs(found, event, person);
  noteFiles(work, event, isWhole);
  if (event.erased !== undefined && !(await isNamed(work, event))) return { ...event, erased: erasure };
  if (isWhole) return event.erased === undefined ? emptied(event, erasure, person) : null;
  return masked(event, erasure, maskOf(found, event.conversation));
}

/** The erased form of a compaction, which tells covered events in other words, or of a baseline with shortened texts. */
async function coverOf(
  work: Work,
  event: Event,
  erasure: EventId,
  isCovering: boolean,
): Promise<Event | null> {
  if (!isCovering || event.erased !== undefined) return null;
  if (event.kind === 'compaction') return remade(work, event, erasure);
  return event.kind === 'baseline' ? withoutCuts(event, erasure) : null;
}

function isTheirs({ causes }: Survey, event: Event, person: string): boolean {
  return isBy(event, person) || causes.has(originOf(event) ?? '');
}

/** The mask for a conversation. Single words count as the person's only in conversations connected with the person. */
function maskOf({ near, words }: Survey, conversation: ConversationId): (text: string) => string {
  return near.has(conversation) ? words.mask : words.maskRuns;
}

/** Whether the erasure that the event names was appended. */
async function isNamed({ deps }: Work, event: Event): Promise<boolean> {
  return (await deps.store.readById(event, event.erased ?? '')) !== null;
}

/** The compaction made again without a model, from the remaining words of the events that it covers. */
async function remade(
  { deps }: Work,
  event: EventOf<'compaction'>,
  erasure: EventId,
): Promise<EventOf<'compaction'>> {
  const { number, upTo, reason, by, tokens } = event.body;
  const { events, people } = await readCovered(deps, event, upTo);
  const made = await inSlices(
    deps.clock,
    extractionSteps({
      number,
      upTo,
      reason,
      by,
      before: tokens.before,
      budget: tokens.after,
      events,
      previous: null,
      policy: DEFAULT_POLICY,
      secret: deps.secretOf({ ...event, agent: by }),
      people,
      count: deps.countTokens,
      trusted: deps.trust ?? null,
    }),
  );
  return { ...event, body: made ?? cut(event.body), erased: erasure };
}

async function readCovered(
  { store }: Pick<ErasureDeps, 'store'>,
  log: ConversationKey,
  upTo: number,
): Promise<{ events: Event[]; people: People }> {
  const events: Event[] = [];
  const people = createPeople();
  for await (const page of readPages(store, log, { after: 0, upTo }))
    for (const event of page) {
      if (event.kind !== 'notice' && event.author.kind === 'user') addPerson(people, event.author, event.seq);
      events.push(event);
    }
  return { events, people };
}

function cut(body: CompactionBody): CompactionBody {
  const facts = {
    ...body.facts,
    artifacts: [],
    filesRead: [],
    filesModified: [],
    identifiers: [],
    passing: [],
  };
  return {
    ...body,
    summary: ERASED_WORDS,
    quotes: [],
    chosen: [],
    demands: '',
    listing: '',
    facts: { ...facts, errors: [], constraints: [], claims: [], pending: [] },
  };
}

/** The baseline without its shortened texts; null if it has none. */
function withoutCuts(event: EventOf<'baseline'>, erasure: EventId): Event | null {
  const { adopts } = event.body;
  if (!adopts?.trimmed && !adopts?.turn) return null;
  const turn = adopts.turn && { ...adopts.turn, text: ERASED_WORDS };
  const trimmed = adopts.trimmed?.map((each) => ({ ...each, text: ERASED_WORDS }));
  const left = { ...adopts, ...(turn && { turn }), ...(trimmed && { trimmed }) };
  return { ...event, body: { ...event.body, adopts: left }, erased: erasure };
}

function noteFiles({ gone, kept, outputs }: Work, event: Event, isWhole: boolean): void {
  if (event.kind === 'tool.result' && event.body.artifact !== undefined && isWhole)
    outputs.add(event.body.artifact);
  const isTask = event.kind === 'delegation.opened';
  if (!isTask && event.kind !== 'message' && event.kind !== 'notice') return;
  for (const each of event.body.attachments ?? [])
    if (each.type !== 'text' && isWhole) gone.add(each.hash);
    // Attachments of a task are not kept for it, because it only refers to those of a message.
    else if (each.type !== 'text' && !isTask) kept.add(each.hash);
}

function erasureId({ id }: Work, name: string, part: number): EventId {
  return runtimeId('erasure', id, name, part);
}

/** Writes erased forms and their erasures. Returns the seq of the last erasure. */
async function writeHoles(
  work: Work,
  log: ConversationKey,
  holes: readonly Event[],
  name: string,
): Promise<number> {
  const { deps, person, by, erased } = work;
  let last = 0;
  for (let part = 0; part * MAX_ERASED < holes.length; part += 1) {
    const some = holes.slice(part * MAX_ERASED, (part + 1) * MAX_ERASED);
    const hashes = await deps.store.replaceEvents(log, some);
    const events = some.map(({ id }, index) => ({ id, hash: hashes[index]! }));
    const id = erasureId(work, name, part);
    const draft: EventDraft = {
      id,
      author: by,
      to: [],
      kind: 'command',
      body: { command: 'erase', erasure: { person, events } },
    };
    const [appended] = await deps.log.append(log, [draft], { wake: false });
    last = appended?.event.seq ?? last;
    erased.events += some.length;
  }
  return last;
}

/** Drops all data derived from the log, and erases the records of its actors. */
async function forgetLog(work: Work, log: ConversationKey, seq: number): Promise<void> {
  const { deps } = work;
  const { store } = deps;
  if (deps.checkpoints) await deps.checkpoints.erase(log, seq);
  else await store.removeDerived(log, await store.derivedKeys(log, ''));
  await store.inbox.forget(log);
  deps.log.forget(log);
  deps.forTools?.forget(log);
  deps.forget(log);
  for (const actor of await store.listActors(log)) {
    if ('address' in actor) continue;
    deps.registry.drop(actor);
    await patchAtRest(deps, actor, (held) => held && patchOf(work, log, held));
  }
}

/** The change of an actor's record. Drops its session, because the vendor has the words; the next turn begins another. */
function patchOf(work: Work, log: ConversationKey, record: ActorRecord): ActorPatch | null {
  const { session, snapshot, timers } = record;
  const mask = maskOf(work.found, log.conversation);
  const state = {
    session: null,
    snapshot: snapshot === null ? null : maskedJson(snapshot, mask),
    timers: JSON.parse(maskedJson(JSON.stringify(timers), mask)) as ActorRecord['timers'],
  };
  const isSame =
    session === null &&
    state.snapshot === snapshot &&
    JSON.stringify(state.timers) === JSON.stringify(timers);
  if (isSame) return null;
  if (session !== null) work.erased.sessions += 1;
  return { state };
}

/** Erases entries beside the logs: those of conversations connected with the person, and those that conversations share. */
async function eraseEntries(work: Work): Promise<void> {
  const { tenant, found, gone, kept, deps, erased } = work;
  for (const conversation of found.near)
    for (const { namespace, after, before, isOwn } of placesOf(conversation)) {
      if (namespace === 'derived' || namespace === 'prompt') continue;
      await eachEntry(work, { tenant, namespace, after, before }, (entry) =>
        isOwn(entry.key) ? eraseOwn(work, conversation, entry) : Promise.resolve(),
      );
    }
  for (const key of [...gone].filter((hash) => !kept.has(hash))) {
    const entry = { tenant, namespace: 'body', key } as const;
    const [data] = await deps.store.entries.readEntries([entry]);
    if (typeof data !== 'string') continue;
    await deps.store.entries.removeEntries([entry]);
    erased.attachments += 1;
  }
  for (const namespace of ['body', 'note'] as const)
    await eachEntry(work, { tenant, namespace, after: '', before: '\uffff' }, async (entry) => {
      if (kept.has(entry.key) || deps.spared.has(entry.key)) return;
      await replaceEntry(work, entry, maskedJson(entry.data, found.words.maskRuns));
    });
}

type Entry = EntryKey & { data: string };

async function eachEntry(
  { deps }: Work,
  range: Omit<KeyRange, 'limit'>,
  visit: (entry: Entry) => Promise<void>,
): Promise<void> {
  const { entries } = deps.store;
  const limit = 100;
  for (let { after } = range; ;) {
    const keys = await entries.entryKeys({ ...range, after, limit });
    const { tenant, namespace } = range;
    // One at a time, because a body may have megabytes.
    for (const key of keys) {
      const [data] = await entries.readEntries([{ tenant, namespace, key }]);
      if (typeof data === 'string') await visit({ tenant, namespace, key, data });
    }
    if (keys.length < limit) return;
    after = keys.at(-1) ?? after;
  }
}

/** Erases an output of a tool, the record of a call, or the journal of a turn. */
async function eraseOwn(work: Work, conversation: ConversationId, entry: Entry): Promise<void> {
  const { found } = work;
  const mask = maskOf(found, conversation);
  const isOfTurn = found.causes.has(entry.key.split('/', 1)[0] ?? '');
  // The journal of an ended turn is never read, and a turn that is tried again asks the model again.
  if (entry.namespace === 'journal') {
    if (isOfTurn || maskedJson(entry.data, mask) !== entry.data) await replaceEntry(work, entry, null);
  } else if (entry.namespace === 'effect') {
    const record = JSON.parse(entry.data) as { data?: string };
    if (record.data === undefined) return;
    const data = isOfTurn ? ERASED_WORDS : maskedJson(record.data, mask);
    await replaceEntry(work, entry, JSON.stringify({ ...record, data }));
  } else {
    const isWhole = work.outputs.has(entry.key.slice(conversation.length + 1));
    await replaceEntry(work, entry, isWhole ? ERASED_WORDS : maskedJson(entry.data, mask));
  }
}

async function replaceEntry(work: Work, { data: before, ...key }: Entry, data: string | null): Promise<void> {
  if (data === before) return;
  const { entries } = work.deps.store;
  if (key.namespace === 'effect' || key.namespace === 'note') await entries.swap(key, before, data ?? '');
  else {
    await entries.removeEntries([key]);
    if (data !== null) await entries.putOnce(key, data, work.deps.clock.now());
  }
  work.erased.entries += 1;
}
