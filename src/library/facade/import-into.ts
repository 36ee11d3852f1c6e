import { isDeepStrictEqual } from 'node:util';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import type { ImportFolds, TurnDeps } from '../../actors/attempt/turn-run.ts';
import {
  appendSettled,
  type ImportedProgress,
  newProgress,
  noteProgress,
} from '../../actors/actor/at-rest.ts';
import { TroupeError } from '../../base/errors.ts';
import type { AgentId, Event, EventDraft, TenantId } from '../../events/index.ts';
import {
  admitDraft,
  type ImportItem,
  type ImportOptions,
  type ImportReport,
  importTranscript,
  newImportReport,
  noteItem,
  noteSkip,
  readImportRequest,
} from '../import/index.ts';
import { slicesOf } from '../../base/slices.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { ImportLimits, ImportRequest } from '../troupe.ts';

/** Drafts appended at once. */
const BATCH = 500;

/** Appends a transcript as it streams in. Wakes no agents, because its messages are answered. */
export async function importInto(
  deps: TurnDeps,
  tenant: TenantId,
  chunks: AsyncIterable<Uint8Array | string>,
  request: ImportRequest & ImportLimits,
): Promise<ImportReport> {
  const report = newImportReport();
  const options = transcriptOptions(deps, request);
  const { agent } = options;
  const slices = slicesOf(deps.clock);
  const items = importTranscript(chunks, { ...options, slices }, report);
  let batch = null as Batch | null;
  let lastAt = deps.clock.now();
  for await (const item of items) {
    const { conversation, draft: given, at, line } = item;
    if (!given) {
      if (batch) await appendBatch(deps, batch);
      lastAt = Math.min(at ?? lastAt, deps.clock.now());
      await recordImported(deps, { tenant, conversation }, item, { by: agent, at: lastAt, report });
      continue;
    }
    const place = { conversation, line, place: report.lines };
    // Other formats contain only messages and calls, with ids that the runtime never creates.
    const draft = report.format === 'troupe' ? admitDraft(given, place) : given;
    refuseForeignConversations(conversation, draft, request.mayLeadTo);
    if (request.readsAll === false) await refuseUnseenFiles(deps, { tenant, conversation }, draft, line);
    if (batch && batch.log.conversation !== conversation) {
      await endBatch(deps, batch);
      batch = null;
    }
    if (batch && batch.drafts.length >= BATCH) {
      await appendBatch(deps, batch);
      await slices.next();
    }
    batch ??= await beginBatch(deps, { tenant, conversation }, draft, report);
    // Times in the future become now.
    lastAt = Math.min(at ?? lastAt, deps.clock.now());
    batch.drafts.push(draft);
    batch.at.push(lastAt);
    noteProgress(batch.progress, batch.log, draft);
  }
  if (batch) await endBatch(deps, batch);
  return report;
}

/** Leaves a summary out of the log, and out of the report's counts, if it covers events that are not in this file. */
async function recordImported(
  deps: TurnDeps,
  log: ConversationKey,
  item: Extract<ImportItem, { draft: null }>,
  { by, at, report }: { by: AgentId; at: number; report: ImportReport },
): Promise<void> {
  if (await deps.features.compaction?.recordSummary(deps, log, item.summary, { by, at })) return;
  noteItem(report, item, -1);
  noteSkip(report, 'summary', item.line, 'the conversation has other events, which it would hide');
}

/** Options of the reader. An agent of this troupe speaks under its name here. */
function transcriptOptions({ agents }: Pick<EngineDeps, 'agents'>, request: ImportRequest): ImportOptions {
  const options = readImportRequest(request);
  const agentName = agents.get(options.agent)?.profile.name;
  return { ...options, ...(agentName !== undefined && { agentName }) };
}

interface Batch {
  log: ConversationKey;
  drafts: EventDraft[];
  at: number[];
  progress: ImportedProgress;
  folds: ImportFolds | null;
}

async function beginBatch(
  deps: TurnDeps,
  log: ConversationKey,
  first: EventDraft,
  { format }: ImportReport,
): Promise<Batch> {
  if (format === 'troupe') await refuseOtherContents(deps, log, first);
  const folds = (await deps.features.checkpoints?.ofImport(deps, log)) ?? null;
  return { log, drafts: [], at: [], progress: newProgress(), folds };
}

async function appendBatch(deps: EngineDeps, { log, drafts, at, progress, folds }: Batch): Promise<void> {
  await appendSettled(deps, log, progress, () => appendMissing(deps, log, drafts, at));
  drafts.length = 0;
  at.length = 0;
  await folds?.extend(progress);
}

async function endBatch(deps: EngineDeps, batch: Batch): Promise<void> {
  await appendBatch(deps, batch);
  await batch.folds?.store();
}

/**
 * Appends the drafts that are missing. An export may be imported over its own conversation: existing events stay
 * as they are, without the import mark.
 */
async function appendMissing(
  deps: EngineDeps,
  log: ConversationKey,
  drafts: readonly EventDraft[],
  at: readonly number[],
): Promise<void> {
  try {
    const time = (index: number) => at[index] ?? deps.clock.now();
    await deps.log.append(log, drafts, { at: time, wake: false, spares: false });
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
    // The missing events are stored by now, so every draft must equal a stored event.
    for (const draft of drafts) {
      const there = await deps.store.readById(log, draft.id);
      if (!there || !isSame(there, deps.redaction?.draft(draft) ?? draft)) throw error;
    }
  }
}

function isSame(there: Event, draft: EventDraft): boolean {
  const { tenant: _t, conversation, seq: _s, at: _a, tokens: _n, altered: _x, ...own } = there;
  return isDeepStrictEqual(admitDraft(own, { conversation, line: 0, place: Number.MAX_SAFE_INTEGER }), draft);
}

/**
 * Refuses a file that reaches conversations its caller may not use. The file can do so in three ways: the target name may
 * differ from the requested one, a task names the conversation its result goes to, and an export or deletion includes
 * the threads that tasks name.
 */
function refuseForeignConversations(
  conversation: string,
  draft: EventDraft,
  mayLeadTo: ImportLimits['mayLeadTo'],
): void {
  if (!mayLeadTo) return;
  const named = [conversation];
  if (draft.kind === 'delegation.opened') {
    const { home, thread, root } = draft.body;
    named.push(home, thread, root);
  }
  const beyond = named.find((each) => !mayLeadTo(each));
  if (beyond === undefined) return;
  const message = `there is no conversation "${beyond}"`;
  throw new TroupeError('conversation_unknown', message, { conversation: beyond });
}

/**
 * Refuses an event that names stored bytes by their hash, unless the conversation already has it. Otherwise a caller
 * who may not read the whole tenant could read, or show to an agent, files of conversations that the caller may not
 * see.
 */
async function refuseUnseenFiles(
  { store }: Pick<EngineDeps, 'store'>,
  log: ConversationKey,
  draft: EventDraft,
  line: number,
): Promise<void> {
  const named = filesIn(draft);
  if (named.length === 0) return;
  const there = await store.readById(log, draft.id);
  const seen = new Set(there ? filesIn(there) : []);
  if (named.every((each) => seen.has(each))) return;
  const message = `Line ${line}: it names an attachment whose bytes are not in the file. Only a key that may read every conversation of the tenant can import it; or send the file as a message`;
  throw new TroupeError('import_invalid', message, { line });
}

/** Hashes of the stored bytes that an event names. */
function filesIn(event: EventDraft | Event): string[] {
  if (event.kind !== 'message' && event.kind !== 'notice' && event.kind !== 'delegation.opened') return [];
  return (event.body.attachments ?? []).flatMap((each) => (each.type === 'text' ? [] : [each.hash]));
}

/** An export refers to events by seq, so its conversation must be empty or begin with the same event. */
async function refuseOtherContents(deps: EngineDeps, log: ConversationKey, first: EventDraft): Promise<void> {
  const [present] = await deps.store.read(log, { after: 0, limit: 1 });
  if (!present || present.id === first.id) return;
  throw new TroupeError(
    'import_invalid',
    `conversation "${log.conversation}" has other contents, and an export needs an empty one: choose another with --conversation`,
    { conversation: log.conversation },
  );
}
