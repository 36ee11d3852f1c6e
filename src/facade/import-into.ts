import { isDeepStrictEqual } from 'node:util';
import type { EngineDeps } from '../actors/engine/engine-deps.ts';
import {
  appendSettled,
  type ImportedProgress,
  newProgress,
  noteProgress,
} from '../actors/engine/settle-imported.ts';
import { TroupeError } from '../errors.ts';
import { AgentId, type Event, type EventDraft, type TenantId } from '../events/index.ts';
import {
  admitDraft,
  type Format,
  FORMATS,
  type ImportReport,
  importTranscript,
  newImportReport,
} from '../import/index.ts';
import type { ConversationKey } from '../store/store.ts';
import type { ImportLimits, ImportRequest } from '../troupe.ts';

/** Drafts appended at once. */
const BATCH = 500;

/** Appends a transcript as it streams in. Wakes no agents, because its messages are answered. */
export async function importInto(
  deps: EngineDeps,
  tenant: TenantId,
  chunks: AsyncIterable<Uint8Array | string>,
  request: ImportRequest & ImportLimits,
): Promise<ImportReport> {
  const report = newImportReport();
  const items = importTranscript(chunks, transcriptOptions(deps, request), report);
  let batch = null as Batch | null;
  let lastAt = deps.clock.now();
  for await (const { conversation, draft: given, at, line } of items) {
    const place = { conversation, line, place: report.lines };
    // Other formats contain only messages and calls, with ids that the runtime never creates.
    const draft = report.format === 'troupe' ? admitDraft(given, place) : given;
    refuseForeignConversations(conversation, draft, request.mayLeadTo);
    if (batch && batch.log.conversation !== conversation) {
      await appendBatch(deps, batch);
      batch = null;
    }
    if (batch && batch.drafts.length >= BATCH) await appendBatch(deps, batch);
    if (!batch) {
      batch = { log: { tenant, conversation }, drafts: [], at: [], progress: newProgress() };
      if (report.format === 'troupe') await refuseOtherContents(deps, batch.log, draft);
    }
    // Times in the future become now.
    lastAt = Math.min(at ?? lastAt, deps.clock.now());
    batch.drafts.push(draft);
    batch.at.push(lastAt);
    noteProgress(batch.progress, batch.log, draft);
  }
  if (batch) await appendBatch(deps, batch);
  return report;
}

function transcriptOptions(
  { agents }: Pick<EngineDeps, 'agents'>,
  { format, agent: author = 'assistant', conversation, fileName }: ImportRequest,
) {
  const agent = AgentId.safeParse(author);
  if (!agent.success) throw new TroupeError('import_invalid', `agent: ${agent.error.issues[0]?.message}`);
  const agentName = agents.get(agent.data)?.profile.name;
  return {
    format: formatOf(format),
    agent: agent.data,
    ...(agentName !== undefined && { agentName }),
    ...(conversation !== undefined && { conversation }),
    ...(fileName !== undefined && { fileName }),
  };
}

interface Batch {
  log: ConversationKey;
  drafts: EventDraft[];
  at: number[];
  progress: ImportedProgress;
}

async function appendBatch(deps: EngineDeps, { log, drafts, at, progress }: Batch): Promise<void> {
  await appendSettled(deps, log, progress, () => appendMissing(deps, log, drafts, at));
  drafts.length = 0;
  at.length = 0;
}

/**
 * Appends the drafts that are missing. An export may be imported over its own conversation, or over an import by an
 * earlier version: existing events stay as they are, without the import mark.
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

function formatOf(format: string | undefined): Format | 'auto' {
  if (format === undefined || format === 'auto') return 'auto';
  const known = FORMATS.find((name) => name === format);
  if (known) return known;
  throw new TroupeError('import_invalid', `there is no format "${format}"; known: ${FORMATS.join(', ')}`, {
    format,
  });
}
